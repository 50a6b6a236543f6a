"""The masks page in a browser, reached by a link on a server that has not shown any page yet."""

from __future__ import annotations

from tests.browser.conftest import Watcher, start_server

PROBES = ("_stcore/health", "_stcore/host-config")


def test_a_cold_deep_link_shows_the_masks_inside_the_app(browser):
    server, address = start_server()
    context = browser.new_context()
    watch = Watcher(context.new_page(), address)
    try:
        watch.page.on("response", lambda r: missing.append(r.url) if r.status == 404 else None)
        missing: list[str] = []
        watch.open("/masks?mask_layer=0", "mask_maps")
        assert watch.page.get_by_role("link", name="Watch").count() == 1
        assert "mask_layer=0" in watch.page.url
        assert all(url.endswith(PROBES) for url in missing)  # Streamlit looks for its base path
        assert len(watch.errors) == len(missing)
    finally:
        context.close()
        server.terminate()
        server.wait(10)


def test_blocked_cells_have_no_weight_and_the_others_add_up_to_one(watch):
    watch.open("/?word=cat", "live_map")  # the word is one selection on every page
    watch.page.get_by_role("link", name="Masks").click()
    watch.page.wait_for_selector(".st-key-mask_maps svg.main-svg")
    rows = watch.plot("mask_maps", "gd.data[0].z")
    n_real = len("cat") + 1  # [SOS] and three letters
    for i, row in enumerate(rows):
        for j, weight in enumerate(row):
            assert (weight is None) == (j > i or j >= n_real)
        assert abs(sum(w for w in row if w is not None) - 1) < 2e-3
    columns = [t.replace("<br>", "") for t in watch.plot("mask_maps", "gd.layout.xaxis.ticktext")]
    assert columns == ["[SOS]", "t", "a", "c"] + ["[PAD]"] * 7
