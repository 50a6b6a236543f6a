"""Your data in a browser: uploading files, training on them, and the pictures of examples."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.pages.own_data.conftest import PAIRS

TINY = "heads=2&width=16&layers_encoder=1&layers_decoder=1&steps=60&batch_size=16&device=cpu"


@pytest.fixture
def tsv(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("\n".join("\t".join(pair) for pair in PAIRS), encoding="utf-8")
    return path


def upload(watch, path, key="pairs_upload"):
    watch.page.locator(f".st-key-{key} input[type=file]").set_input_files(path)


def says(watch, key, text):
    watch.page.locator(f".st-key-{key}").get_by_text(text).first.wait_for()


def data_of(watch, link):
    """Open Your data from Watch, by the link at the top."""
    watch.open(link, "live_map")
    watch.page.get_by_role("link", name="Your data").click()
    watch.page.wait_for_selector(".st-key-data_text input")


def test_an_uploaded_file_is_capped_and_trained_on_and_its_words_label_the_axes(watch, tsv):
    data_of(watch, f"/?{TINY}&task=dates")
    upload(watch, tsv)
    says(watch, "pairs_report", "180 pairs read")
    watch.type("pairs_most", "150")
    says(watch, "pairs_report", "180 pairs read, 150 kept")
    watch.page.get_by_role("button", name="Train on this").click()
    watch.page.wait_for_selector(".st-key-live_map .map[data-step]")
    watch.until(lambda: watch.number("live_map", "step") > 0, what="a frame after step 0")
    columns = watch.plot("live_map", "gd.picture.columns")
    known = {word for source, _ in PAIRS for word in (*source.lower().rstrip(".").split(), ".")}
    assert len(columns) > 5
    assert {token.strip() for token in columns} - {"[SOS]", "[EOS]"} <= known


@pytest.mark.slow
def test_a_tokenizer_file_shows_its_own_tokens(watch, tmp_path):
    vocabulary = ("<unk>", "the", "cat", "sees", "le", "chat")
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    path = tmp_path / "tokenizer.json"
    backend.save(str(path))
    data_of(watch, f"/?{TINY}&task=en-fr&tokenizer_kind=characters")
    watch.page.locator(".st-key-tokenizer_kind input").click()
    watch.page.get_by_role("option", name="file").click()
    upload(watch, path, "tokenizer_upload")
    says(watch, "data_tokens", "In use:")
    watch.type("data_text", "the cat sees nobody")
    says(watch, "data_tokens", "4 tokens, 1 unknown")
    chips = watch.page.locator(".st-key-data_tokens .hl-chips").first.locator("span b")
    assert chips.all_inner_texts() == ["[SOS]", "the", "cat", "sees", "nobody", "[EOS]"]
    unknown = watch.page.locator(".hl-chips .unknown").first
    assert unknown.evaluate("e => getComputedStyle(e).borderTopStyle") == "dashed"
    assert "[UNK]" in unknown.inner_text()


def test_a_chosen_row_is_drawn_and_pointing_at_a_token_leaves_only_its_lines(watch):
    data_of(watch, f"/?{TINY}&task=reverse")
    watch.page.wait_for_selector(".st-key-data_alignment_figure svg.main-svg")
    watch.page.locator(".st-key-data_held_out [role=radiogroup] label").nth(1).click()
    word = watch.page.locator(".st-key-data_held_out [role=radiogroup] label").nth(1).inner_text()
    letters = word.split("→")[0].strip()
    key = "data_alignment_figure"
    watch.until(lambda: "".join(watch.plot(key, "gd.data[1].text")) == letters, what="the chosen word")
    visible = "gd.layout.shapes.filter(s => s.opacity > 0 && s.visible !== false).length"
    assert watch.plot(key, visible) == len(letters)
    watch.point(key, watch.plot(key, "gd.data[0].x[0]"), 0, lambda: watch.plot(key, visible) == 1)


def test_nothing_is_wider_than_the_page_and_the_figure_is_above_the_fold(watch):
    data_of(watch, f"/?{TINY}&task=en-fr")
    watch.page.wait_for_selector(".st-key-data_alignment_figure svg.main-svg")
    main, figure = map(watch.page.locator, ("[data-testid=stMain]", ".st-key-data_alignment_figure"))
    for width, height in ((1280, 720), (1920, 1080)):
        watch.page.set_viewport_size({"width": width, "height": height})
        watch.until(lambda w=width: main.evaluate("e => e.clientWidth") > w / 2, what="the new size")
        assert main.evaluate("e => e.scrollWidth <= e.clientWidth")
        box = figure.bounding_box()
        assert box["y"] + box["height"] < height  # above the fold
