"""The user's own pairs: uploaded, limited, trained on, and hidden from other visitors."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from pages.presentation import beats
from tests.pages.own_data.conftest import PAIRS, TSV, examples, paste, upload
from transformer.runs.registry import REGISTRY
from transformer.storage.library import Library, packed

PICTURE = "picture.png", b"\x89PNG\r\n\x1a\n\0\0"


def test_pairs_can_be_uploaded_on_any_task_and_become_the_task(data):
    page = data(task="dates")
    assert page.at.file_uploader(key="pairs_upload").accept_multiple_files
    assert page.value("task") == "dates"
    upload(page, ("both.tsv", TSV.encode()))
    assert page.value("task") == "pairs"
    assert page.value("preset") == "Your own pairs"
    assert page.errors == []
    assert page.says(f"“both.tsv”: **{len(PAIRS)}** pairs")


def test_pasted_pairs_are_counted_and_become_the_examples(bring):
    page = bring(text=TSV + "\n\t\nalone\t\n" + TSV.splitlines()[0])
    assert page.errors == []
    n = len(PAIRS)
    own = page.value("own_data").pairs
    kept = len(own.capped.pairs)
    assert page.says(f"**TSV, 2 columns**, pasted text: **{n}** pairs read, **{kept}** kept")
    assert page.says("Lines skipped: 1 × an empty line; 1 × an empty side; 1 × a repeated pair.")
    known = dict(own.capped.pairs)
    for key in ("data_trained", "data_held_out"):
        for source, target in examples(page, key):
            assert known[source] == target
    assert page.says("No gold alignment is known")


def test_the_newest_uploads_are_read_as_two_aligned_files_or_as_one_file(bring):
    page = bring(("both.tsv", TSV.encode()))
    assert page.says("“both.tsv”")
    digest = page.value("own_data").pairs.digest
    sides = ["\n".join(side).encode() for side in zip(*PAIRS, strict=True)]
    upload(page, ("a.en", sides[0]), ("a.fr", sides[1]))
    assert page.says("two aligned files**, “a.en” and “a.fr”")
    assert page.value("own_data").pairs.digest == digest  # the same pairs, from two files
    newest = "\n".join(TSV.splitlines()[:120]).encode()
    upload(page, ("both.tsv", TSV.encode()), ("newest.tsv", newest))
    assert page.errors == []
    assert page.says("“newest.tsv”: **120** pairs")
    upload(page, ("a.en", sides[0]), ("short.fr", b"un\n" * 30))
    assert "has 180 lines and “short.fr” has 30" in page.errors[0]
    upload(page, PICTURE, ("one.txt", sides[0]))
    assert "As two sides: “picture.png” is not UTF-8 text" in page.errors[0]
    assert "The newest file alone: “one.txt” has only one column" in page.errors[0]


def test_the_sign_for_a_tab_in_the_example_of_the_box_separates_sides_too(bring):
    page = bring(text=TSV)
    digest = page.value("own_data").pairs.digest
    assert bring(text=TSV.replace("\t", "⇥")).value("own_data").pairs.digest == digest


def test_a_file_that_cannot_be_used_is_refused_in_place_and_the_last_good_pairs_stay(bring):
    page = bring()
    own = page.value("own_data").pairs
    upload(page, PICTURE)
    assert len(page.errors) == 1
    assert "“picture.png” is not UTF-8 text" in page.errors[0]
    assert page.says("The pairs of pasted text stay in use.")
    assert page.value("own_data").pairs is own
    assert page.enabled("data_train")
    upload(page)
    assert page.errors == []  # the file was removed from the list


def test_pasted_text_beyond_the_limit_is_refused_by_the_server(bring):
    page = bring(text="The cat sees it.\tLe chat le voit.\n" * 4000)
    assert "The pasted text has" in page.errors[0]
    assert "own_data" not in page.at.session_state


HEADED = "sep=;\r\nen;fr\r\n" + "".join(f"{s};{t}\r\n" for s, t in [("It's she", "C'est été"), *PAIRS])


def test_the_heading_and_the_encoding_are_said_beside_the_first_pairs(bring):
    page = bring(("excel.csv", HEADED.encode("windows-1252")))
    assert page.errors == []
    assert page.says("**181** pairs read")
    assert page.says("First line taken as heading: en, fr.")
    assert page.says("Not UTF-8, so read as Windows-1252: “excel.csv”")
    assert page.says("It's she → **C'est été**")
    assert page.value("pairs_heading") is True


def test_the_switch_reads_the_same_upload_with_its_first_line_as_a_pair_and_back(bring):
    page = bring(("excel.csv", HEADED.encode())).set("pairs_longest_source", 10)
    with_heading = page.value("own_data").pairs
    page.go("masks").go("data").set("pairs_heading", False)  # the uploader has forgotten its file
    assert page.errors == []
    assert page.says("**182** pairs read")
    assert not page.says("taken as heading")
    assert page.says("en → **fr**")
    assert page.value("pairs_longest_source") == 10
    page.set("pairs_min_frequency", 1)
    assert ("en", "fr") in page.value("own_data").pairs.capped.pairs
    again = page.go("masks").go("data")
    assert again.value("pairs_heading") is False
    assert again.says("**182** pairs read")
    page.set("pairs_heading", True).set("pairs_min_frequency", 5)
    assert page.value("own_data").pairs.digest == with_heading.digest
    paste(page, TSV)
    assert page.value("pairs_heading") is False
    page.set("pairs_heading", True)
    assert page.says("First line taken as heading: The red cat sees 0 cats., Le chat rouge voit 0 chats.")


def test_a_switch_that_leaves_too_few_pairs_is_refused_and_can_be_turned_back(bring):
    page = bring(text="".join(f"word {i}\tmot {i}\n" for i in range(20)))
    page.set("pairs_heading", True)
    assert any("has 19 usable pairs" in error for error in page.errors)
    assert page.says("**20** pairs read")
    page.set("pairs_heading", False)
    assert not any("has 19 usable pairs" in error for error in page.errors)


def test_a_refused_file_does_not_affect_a_run_that_is_training(bring, slow):
    page = bring(**{name: slow[name] for name in ("steps", "pace")}).go("watch").press("run_start")
    run = page.run
    assert run.config.train.task == "pairs"
    upload(page.go("data"), PICTURE)
    assert page.run is run
    assert run.view.state in ("queued", "training")


def test_each_limit_applies_at_once_and_an_impossible_one_keeps_the_last_pairs(bring):
    page = bring()
    before = page.value("own_data").pairs
    page.set("pairs_most", 150)
    assert len(page.value("own_data").pairs.capped.pairs) == 150
    assert page.says("**180** pairs read, **150** kept; loosen the limits below to keep more.")
    page.fill({"pairs_most": None, "pairs_longest_source": 5})
    assert page.says("**180** pairs read.")
    assert page.says("at least 5 are needed")  # no pairs are left
    assert not page.enabled("data_train")
    page.fill({"pairs_longest_source": 8, "pairs_swap": True})
    swapped = page.value("own_data").pairs.capped
    assert {(t, s) for s, t in swapped.pairs} == set(before.capped.pairs)
    page.set("pairs_lower", False)
    own = page.value("own_data").pairs
    assert all(source.startswith("Le ") for source, _ in own.capped.pairs)
    page.set("pairs_min_frequency", 0)
    assert len(page.errors) == 1
    assert "min_frequency=0" in page.errors[0]
    assert page.value("own_data").pairs is own
    assert not page.enabled("data_train")


def test_uploaded_pairs_and_their_limits_are_kept_from_page_to_page(bring):
    page = bring().fill({"pairs_longest_target": 9, "pairs_swap": True})
    own = page.value("own_data").pairs
    page.go("masks").go("data")
    assert (page.value("pairs_longest_target"), page.value("pairs_swap")) == (9, True)
    assert page.value("own_data").pairs is own
    assert page.says("pasted text")


def test_markup_in_a_file_is_shown_as_text(bring):
    marked = [(f"**{a}** <i>x</i> $y$ [{i}](http://z)", f"`{b}` ![p](q)") for i, (a, b) in enumerate(PAIRS)]
    page = bring(("*my* $x$.tsv", "\n".join("\t".join(pair) for pair in marked).encode()))
    assert any(r"“\*my\* \$x\$\.tsv”" in element.value for element in page.at.markdown)
    page.fill({"pairs_longest_source": None, "pairs_longest_target": None, "pairs_min_frequency": 1})
    known = dict(page.value("own_data").pairs.capped.pairs)
    assert all(known[source] == target for source, target in examples(page, "data_trained"))
    for option in page.at.radio(key="data_trained").options:
        assert "](" not in option
        assert re.search(r"(?<!\\)[<$`]", option) is None


def test_train_on_these_trains_on_the_pairs_and_opens_watch(bring):
    page = bring(steps=3)
    own = page.value("own_data").pairs
    page.press("data_train")
    # The page is Watch now, and AppTest has to be switched to it as well.
    assert page.keys & {"run_pause", "run_start"}
    page.go("watch").until("finished")
    assert page.run.config.train.pairs == own.digest
    frame = page.run.view.frame
    assert frame.step == 3
    known = {word for source, _ in own.capped.pairs for word in own.src.units(source)}
    assert set(frame.words[0].src_tokens[1:-1]) <= known


def test_train_on_these_replaces_a_topology_that_cannot_translate(bring):
    page = bring(topology="encoder-only").press("data_train").go("watch")
    assert page.value("topology") == "encoder-decoder"
    assert page.value("width") == 64  # of the preset, not of the previous settings
    assert page.errors == []
    page.press("run_stop").until("stopped")


@pytest.mark.parametrize("task", ["en-fr", "pairs"])
def test_every_control_has_a_help_text(data, task):
    page = data(task=task, tokenizer_kind="file")
    if task == "pairs":
        paste(page, TSV)
    kinds = ("button", "selectbox", "number_input", "text_input", "toggle", "multiselect", "text_area")
    elements = [element for kind in (*kinds, "radio", "file_uploader") for element in page.at.get(kind)]
    assert len(elements) > 8
    for element in elements:
        assert element.proto.help, element.key


def reloaded(visit, page, link, path="watch"):
    """Open a new session in the browser of this page, which sends the tokens that it has stored."""
    session = page.at.session_state
    runs = [[id_, token, 0] for id_, token in session["tokens"].items() if id_ != session.get("draft")]
    visitor = visit(link).go(path)
    return visitor.send("keyring", "found", [runs, session["own_data_name"]])


def test_uploaded_pairs_are_restored_after_a_reload(bring, visit):
    page = bring()
    again = reloaded(visit, page, {"task": "pairs"}, "data")
    assert again.errors == []
    assert again.value("own_data").pairs is page.value("own_data").pairs
    assert again.says(f"**{len(page.value('own_data').pairs.capped.pairs)}** kept, as they were read.")
    again.press("data_train")
    assert again.errors == []
    assert again.go("watch").run.config.train.pairs == page.value("own_data").pairs.digest
    again.press("run_stop").until("stopped")


def test_a_run_on_uploaded_pairs_can_be_trained_anew_after_a_reload(bring, visit):
    page = bring().press("data_train").go("watch").set("steps", 2).press("run_start").until("finished")
    del page.at.session_state["own_data_name"]  # now only the run keeps the pairs
    page.at.session_state["own_data_name"] = "another"
    again = reloaded(visit, page, {"run": page.run.id})
    assert again.errors == []
    assert not again.says("**Changed:**")
    again.press("run_start").wait_until(lambda: again.run is not page.run).until("finished")
    assert again.run.config == page.run.config


def test_a_viewer_sees_a_run_on_uploaded_pairs_without_an_error_and_without_the_pairs(
    bring, visit, monkeypatch, tmp_path
):
    page = bring().press("data_train").go("watch").set("steps", 2).press("run_start").until("finished")
    viewer = visit({"run": page.run.id})
    assert viewer.errors == []
    assert viewer.says("This run learns its owner's own pairs")
    assert viewer.news["newest"] == 2
    assert not viewer.enabled("run_start")
    assert next(b for b in viewer.at.get("download_button") if b.key == "run_download").proto.disabled
    monkeypatch.setattr(REGISTRY, "library", Library(tmp_path))
    opened = REGISTRY.open_file(packed(page.run.view, page.run.words, None), visitor="v", token="t")
    watches = visit({"run": opened.id})  # a file without a training, of which no model is built
    assert next(b for b in watches.at.get("download_button") if b.key == "run_download").proto.disabled
    viewer.go("data")
    assert viewer.errors == []
    assert "own_data" not in viewer.at.session_state
    assert not any(source in text for text in viewer.texts for source, _ in PAIRS)
    runs = {run.id for run in REGISTRY.listed()}
    refused = "Only the owner of this run can train on its pairs. Upload your own on Your data."
    assert visit({"run": page.run.id}, page="masks").press("run_start").errors == [refused]
    assert visit({"run": page.run.id}).press("seeds_start").errors == [refused]
    story = f"""title = "Mine"
        [runs.own]
        task = "pairs"
        pairs = "{page.run.config.train.pairs}"
        [[beat]]
        says = "Theirs."
        word = "{PAIRS[0][0]}"
        """
    assert visit({"story": beats.packed(dedent(story))}, page="stories").errors == [refused]
    assert {run.id for run in REGISTRY.listed()} == runs
    forged = visit({"task": "pairs", "pairs": page.run.config.train.pairs}).go("data")
    assert forged.says("Upload sentences with their translations")
    assert "own_data" not in forged.at.session_state
