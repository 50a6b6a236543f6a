"""Your data: examples, tokens and one's own pairs, as a visitor meets them."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from pages.own_data import facts
from pages.own_data import tokenizer as data_tokenizer
from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.tasks import PATTERNS
from transformer.tasks.letters import is_held_out
from transformer.tasks.pairs.own import OwnPairs

WORDS = {"red": "rouge", "blue": "bleu", "green": "vert", "black": "noir", "white": "blanc"}
THINGS = {"cat": "chat", "dog": "chien", "book": "livre", "tree": "arbre", "boat": "bateau", "key": "clef"}
PAIRS = [
    (
        f"The {color} {thing} sees {n} {other}s.",
        f"Le {THINGS[thing]} {WORDS[color]} voit {n} {THINGS[other]}s.",
    )
    for n, color in enumerate(WORDS)
    for thing in THINGS
    for other in THINGS
]
TSV = "\n".join("\t".join(pair) for pair in PAIRS)
UPLOAD, PASTE = "pairs_upload", "pairs_paste"
PICTURE = "picture.png", b"\x89PNG\r\n\x1a\n\0\0"


@pytest.fixture
def data(visit):
    """Opens the page by a link with these settings."""

    def opened(**link):
        return visit(**link).go("data")

    return opened


@pytest.fixture
def bring(data):
    """The page with these files uploaded, or a text pasted."""

    def brought(*files, text=None, **link):
        visitor = data(**link, task="pairs")
        return upload(visitor, *files) if files else paste(visitor, TSV if text is None else text)

    return brought


def upload(visitor, *files):
    visitor.at.file_uploader(key=UPLOAD).set_value([(*file, "text/plain") for file in files])
    return visitor.look()


def paste(visitor, text):
    visitor.at.text_area(key=PASTE).set_value(text)
    return visitor.look()


def examples(visitor, key):
    """The pairs of a list, without the signs of Markdown and without their patterns."""
    rows = []
    for option in visitor.at.radio(key=key).options:
        source, target = re.match(r"(.*?) → \*\*(.*?)\*\*", option).groups()
        rows.append((re.sub(r"\\(.)", r"\1", source), re.sub(r"\\(.)", r"\1", target)))
    return rows


def choose(visitor, key, row):
    radio = visitor.at.radio(key=key)
    radio.set_value(row)
    return visitor.look()


# Examples.


def test_the_page_opens_with_right_examples_of_the_task_that_watch_has(data):
    page = data()
    assert page.value("task") == "reverse"
    for key, held_out, n in (("data_trained", False, 12), ("data_held_out", True, 6)):
        assert len(examples(page, key)) == n
        for word, answer in examples(page, key):
            assert answer == word[::-1]
            assert is_held_out(word) == held_out


def test_a_link_to_the_page_arrives(visit):
    page = visit({"task": "dates"}, page="data")
    assert page.says("English dates, written as")


def test_others_are_drawn_on_request_and_stay_until_then(data):
    page = data(task="dates")
    before = examples(page, "data_trained"), examples(page, "data_held_out")
    page.look()
    assert (examples(page, "data_trained"), examples(page, "data_held_out")) == before
    page.press("data_others")
    assert not set(before[0]) & set(examples(page, "data_trained"))
    assert examples(page, "data_held_out") != before[1]


def joined(drawn):
    """The tokens of a drawn alignment: for each of the answer those that it is joined to."""
    below, above = ([re.sub("<.*?>", "", text) for text in trace["text"]] for trace in drawn.data[:2])
    visible = [shape["opacity"] > 0 for shape in drawn.layout["shapes"]]
    n = len(above)
    return above, below, [[i for i in range(n) if visible[row * n + i]] for row in range(len(below))]


def test_one_example_of_both_lists_is_chosen_and_its_letters_are_joined_to_their_mirrors(data):
    page = data()
    for key, other, row in (("data_held_out", "data_trained", 2), ("data_trained", "data_held_out", 3)):
        choose(page, key, row)
        assert page.at.radio(key=other).value is None
        word, _ = examples(page, key)[row]
        above, below, lines = joined(page.drawn("data_alignment_figure"))
        assert "".join(above) == word
        assert "".join(below) == word[::-1]
        assert lines == [[len(word) - 1 - i] for i in range(len(word))]


def test_the_alignment_is_drawn_in_the_tokens_that_are_chosen(data):
    page = data(task="en-fr").set("tokenizer_kind", "characters")
    above, below, _ = joined(page.drawn("data_alignment_figure"))
    assert all(len(token) == 1 for token in above + below)


@pytest.mark.parametrize(
    ("task", "kept_back"),
    [
        ("reverse", "word"),
        ("dates", "day of a month"),
        ("numbers", "number"),
        ("en-it", "combination"),
        ("zh-en", "纽约是一座城市"),
        ("pairs", "source"),
    ],
)
def test_each_task_says_what_is_held_out(task, kept_back):
    assert kept_back in facts.held_out(TrainConfig(task=task))


def test_examples_stand_with_their_number(data):
    assert data(task="numbers").says("**967** different held-out examples")


def test_the_patterns_of_a_grammar_stand_with_what_each_shows(data):
    page = data(task="en-fr")
    for name, look_for in PATTERNS["en-fr"].items():
        assert page.says(f"**{name}** (")
        assert page.says(look_for)
    page.set("patterns_en-fr", ["question"])
    assert not page.says("**clitic** (")
    assert all(source.endswith("?") for source, _ in examples(page, "data_trained"))


def test_the_bars_count_every_example_once(data):
    drawn = data().drawn("data_lengths_figure")
    assert [sum(trace["y"]) for trace in drawn.data] == [1000, 1000]
    assert drawn.data[0]["y"] == drawn.data[1]["y"]  # a reversed word is as long
    assert len(drawn.data[0]["x"]) == 6  # letters of the longest


# One selection with Watch.


def test_what_is_chosen_here_is_chosen_on_watch_and_stays(data):
    page = data(task="numbers").set("language", "de").set("digits", 2)
    page.go("train")
    assert (page.value("task"), page.value("language"), page.value("digits")) == ("numbers", "de", 2)
    page.set("digits", 3).go("data")
    assert page.value("digits") == 3
    assert page.value("width") == 8  # of Watch alone, and still as the link had it


def test_the_patterns_that_are_chosen_go_from_page_to_page(data):
    page = data(task="en-fr").set("patterns_en-fr", ["question"]).go("train")
    assert page.run.config.train.patterns == ("question",)
    page.go("data")
    assert page.at.multiselect(key="patterns_en-fr").value == ["question"]


def test_a_setting_that_cannot_be_is_answered_in_place(data):
    page = data(task="numbers").set("digits", 9)
    assert len(page.errors) == 1
    assert "Digits: 9 is outside" in page.errors[0]


def test_a_task_that_does_not_go_with_the_topology_is_answered_and_its_examples_are_shown(data):
    page = data(task="dates", topology="encoder-only")
    assert "encoder-only" in page.errors[0]
    assert len(examples(page, "data_trained")) == 12


# Tokens.


def chips(visitor, row):
    """The tokens of a row, with their ids and kinds."""
    shown = [text for text in visitor.texts if "hl-chips" in text and "<style>" not in text][row]
    found = re.findall(r'<span class="(.*?)"><b>(.*?)</b><small>(.*?)</small>', shown)
    return [(html.unescape(text), number, kind) for kind, text, number in found]


def test_the_chosen_example_is_shown_as_tokens_with_their_ids(data):
    page = choose(data(), "data_trained", 4)
    word, answer = examples(page, "data_trained")[4]
    for row, text in enumerate((word, answer)):
        tokens = chips(page, row)
        assert tokens[0] == ("[SOS]", "1", "special")
        assert tokens[-1] == ("[EOS]", "2", "special")
        assert tokens[1:-1] == [(letter, str(ord(letter) - ord("a") + 4), "") for letter in text]


def test_an_unknown_word_is_marked_by_name_and_not_by_colour_alone(data):
    page = data(task="en-fr").set("data_text", "the zebra sees the <b>")
    assert page.says("As a question: 7 tokens, **4 unknown**")
    tokens = chips(page, 0)
    assert tokens[1] == ("the", "4", "")
    assert tokens[2] == ("zebra", "[UNK] 3", "unknown")
    assert ("<", "[UNK] 3", "unknown") in tokens
    assert page.says("<b>&lt;</b>")  # a text, and no tag of the page
    assert page.says("As an answer: 7 tokens, **7 unknown**")


def test_the_vocabularies_can_be_searched_and_count_what_training_reads(data):
    page = data(task="numbers")
    page.set("digits", 2)
    read, written = (page.at.dataframe[i].value for i in range(2))
    assert list(read.columns) == ["token", "id", "times"]
    assert list(read["token"][:4]) == ["[PAD]", "[SOS]", "[EOS]", "[UNK]"]
    assert "twenty" in set(read["token"])
    assert set(written["token"][4:]) == set("0123456789")
    assert set(read.loc[read["token"] == "[SOS]", "times"]) == {1000}  # of as many examples
    assert page.says(f"Vocabulary of questions: {len(read) - 4} tokens** and 4 special ones")


def tokenizer_json(*words):
    backend = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(("<unk>", *words))}, unk_token="<unk>")
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return backend.to_str()


def test_an_uploaded_tokenizer_is_used_and_a_bad_one_leaves_it(data):
    page = data(task="en-fr", tokenizer_kind="file")
    assert page.errors == []
    assert page.says("There is no tokenizer.json yet")
    good = tokenizer_json("the", "cat", "le", "chat", "sees")
    page.at.file_uploader(key="tokenizer_upload").set_value(("mine.json", good.encode(), "application/json"))
    page.look()
    assert page.errors == []
    assert page.says("In use: **mine.json**")
    page.set("data_text", "the cat sees nobody")
    assert [text for text, _, _ in chips(page, 0)[1:-1]] == ["the", "cat", "sees", "nobody"]
    assert [kind for _, _, kind in chips(page, 0)[1:-1]] == ["", "", "", "unknown"]
    for name, content in (("bad.json", b'{"a": 1}'), ("picture.png", b"\x89PNG\xff")):
        page.at.file_uploader(key="tokenizer_upload").set_value((name, content, "application/json"))
        page.look()
        assert len(page.errors) == 1
        assert page.says("In use: **mine.json**")
    assert [text for text, _, _ in chips(page, 0)[1:-1]] == ["the", "cat", "sees", "nobody"]


def test_a_tokenizer_is_fetched_by_its_name_and_a_failure_is_said(data, monkeypatch):
    asked = []

    def from_hub(name):
        asked.append(name)
        if name == "nobody/nothing":
            raise InputError("It cannot be fetched.", "tokenizer")
        return tokenizer_json("the", "le")

    monkeypatch.setattr(data_tokenizer, "from_hub", from_hub)
    page = data(task="en-fr", tokenizer_kind="file")
    for name in ("", "../passwd", "https://example.org/x", "nobody/nothing"):
        page.set("tokenizer_name", name).press("tokenizer_fetch")
        assert any("is no name" in error or "cannot be fetched" in error for error in page.errors)
    assert asked == ["nobody/nothing"]
    page.set("tokenizer_name", "some/words").press("tokenizer_fetch")
    assert page.errors == []
    assert page.says("In use: **some/words**")


# One's own pairs.


def test_one_button_leads_to_ones_own_pairs(data):
    page = data(task="dates")
    assert not page.at.file_uploader
    page.press("pairs_bring")
    assert page.value("task") == "pairs"
    assert page.value("preset") == "Your own pairs"
    assert page.at.file_uploader(key=UPLOAD).accept_multiple_files
    assert page.errors == []
    assert page.says("Bring sentences with their translations")


def test_pasted_pairs_are_reported_step_by_step_and_become_the_examples(bring):
    page = bring(text=TSV + "\n\t\nalone\t\n" + TSV.splitlines()[0])
    assert page.errors == []
    n = len(PAIRS)
    assert page.says(f"**TSV, 2 columns**, what you pasted: **{n}** pairs read of {n + 3} lines")
    skipped = page.at.table[0].value
    assert "the same pair as before" in set(skipped["left out because of"])
    assert any(f"line {n + 2}: alone" in text for text in skipped["such as"])
    own = page.value("brought").pairs
    assert page.says(f"{n} read")
    assert page.says(f"**{len(own.capped.pairs)} kept**")
    assert page.says(f"**{len(own.held_out())}** are held out")
    known = dict(own.capped.pairs)
    for key in ("data_trained", "data_held_out"):
        for source, target in examples(page, key):
            assert known[source] == target
    assert page.says("Nobody knows the right alignment here")


def test_the_newest_of_the_uploaded_files_are_read_as_two_sides_or_by_itself(bring):
    page = bring(("both.tsv", TSV.encode()))
    assert page.says("“both.tsv”")
    digest = page.value("brought").pairs.digest
    sides = ["\n".join(side).encode() for side in zip(*PAIRS, strict=True)]
    upload(page, ("a.en", sides[0]), ("a.fr", sides[1]))
    assert page.says("two aligned files**, “a.en” and “a.fr”")
    assert page.value("brought").pairs.digest == digest  # the same pairs by another way
    newest = "\n".join(TSV.splitlines()[:120]).encode()
    upload(page, ("both.tsv", TSV.encode()), ("newest.tsv", newest))
    assert page.errors == []
    assert page.says("“newest.tsv”: **120** pairs")
    upload(page, ("a.en", sides[0]), ("short.fr", b"un\n" * 30))
    assert "has 180 lines and “short.fr” has 30" in page.errors[0]


def test_a_file_that_cannot_be_used_is_refused_in_place_and_the_last_good_pairs_stay(bring):
    page = bring()
    own = page.value("brought").pairs
    upload(page, PICTURE)
    assert len(page.errors) == 1
    assert "“picture.png” is no text" in page.errors[0]
    assert page.says("The pairs of what you pasted stay in use.")
    assert page.value("brought").pairs is own
    assert page.enabled("pairs_train")
    upload(page)
    assert page.errors == []  # taken off the list


def test_more_than_may_be_pasted_is_refused_whatever_the_browser_says(bring):
    page = bring(text="The cat sees it.\tLe chat le voit.\n" * 4000)
    assert "too much to paste" in page.errors[0]
    assert "brought" not in page.at.session_state


def test_a_refused_file_does_not_touch_a_run_that_is_training(bring, slow):
    page = bring(**{name: slow[name] for name in ("steps", "pace")}).go("train").press("run_start")
    run = page.run
    assert run.config.train.task == "pairs"
    upload(page.go("data"), PICTURE)
    assert page.run is run
    assert run.view.state in ("queued", "training")


def test_each_cap_works_at_once_and_is_said(bring):
    page = bring()
    before = page.value("brought").pairs
    page.set("pairs_most", 150)
    assert len(page.value("brought").pairs.capped.pairs) == 150
    assert page.says("150 at most 150 pairs")
    page.set("pairs_most", None).set("pairs_longest_source", 5)
    assert page.says("at least 5 must")  # nothing is left
    assert not page.enabled("pairs_train")
    page.set("pairs_longest_source", 8).set("pairs_swap", True)
    swapped = page.value("brought").pairs.capped
    assert {(t, s) for s, t in swapped.pairs} == set(before.capped.pairs)
    page.set("pairs_lower", False)
    assert all(source.startswith("Le ") for source, _ in page.value("brought").pairs.capped.pairs)


def test_a_cap_that_cannot_be_is_answered_and_the_last_pairs_stay(bring):
    page = bring()
    own = page.value("brought").pairs
    page.set("pairs_min_frequency", 0)
    assert page.errors == ["min_frequency=0 is no whole number from 1; choose at least 1."]
    assert page.value("brought").pairs is own
    assert not page.enabled("pairs_train")


def test_what_was_brought_and_its_caps_outlive_a_visit_to_another_page(bring):
    page = bring().set("pairs_longest_target", 9).set("pairs_swap", True)
    own = page.value("brought").pairs
    page.go("masks").go("data")
    assert (page.value("pairs_longest_target"), page.value("pairs_swap")) == (9, True)
    assert page.value("brought").pairs is own
    assert page.says("what you pasted")


def test_text_of_a_file_is_shown_as_text(bring):
    marked = [(f"**{a}** <i>x</i> $y$ [{i}](http://z)", f"`{b}` ![p](q)") for i, (a, b) in enumerate(PAIRS)]
    page = bring(text="\n".join("\t".join(pair) for pair in marked))
    page.set("pairs_longest_source", None).set("pairs_longest_target", None).set("pairs_min_frequency", 1)
    known = dict(page.value("brought").pairs.capped.pairs)
    assert all(known[source] == target for source, target in examples(page, "data_trained"))
    for option in page.at.radio(key="data_trained").options:
        assert "](" not in option
        assert re.search(r"(?<!\\)[<$`]", option) is None


def test_train_on_these_trains_on_them_and_goes_to_watch(bring):
    page = bring(steps=3)
    own = page.value("brought").pairs
    page.press("pairs_train")
    assert "run_start" in page.keys  # it is Watch now, of which the test's own browser is to be told
    page.go("train").until("finished")
    assert page.run.config.train.pairs == own.digest
    frame = page.run.view.frame
    assert frame.step == 3
    known = {word for source, _ in own.capped.pairs for word in own.src.units(source)}
    assert set(frame.probes[0].src_tokens[1:-1]) <= known


def test_train_on_these_leaves_a_topology_that_cannot_translate(bring):
    page = bring(topology="encoder-only").press("pairs_train").go("train")
    assert page.value("topology") == "encoder-decoder"
    assert page.value("width") == 64  # of the preset, and not of what was left
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


def test_no_page_of_the_data_brings_the_pairs_to_others(bring, visit):
    bring()
    other = visit(task="pairs").go("data")
    assert "brought" not in other.at.session_state
    assert other.says("Bring sentences with their translations")


def reloaded(visit, page, link, path="train"):
    """A new session of the browser that this page is in: it tells what it has kept."""
    session = page.at.session_state
    runs = [[id_, token, 0] for id_, token in session["tokens"].items() if id_ != session.get("draft")]
    visitor = visit(link).go(path)
    return visitor.send("keyring", "found", [runs, session["brought_name"]])


def test_uploaded_pairs_are_there_again_after_a_reload(bring, visit):
    page = bring()
    again = reloaded(visit, page, {"task": "pairs"}, "data")
    assert again.errors == []
    assert again.value("brought").pairs is page.value("brought").pairs
    assert again.says("kept**")
    own = again.value("brought").pairs  # as a run's folder gives it back: what was read before is not known
    again.at.session_state["brought"] = replace(
        again.value("brought"), pairs=OwnPairs(replace(own.capped, steps=()))
    )
    assert again.look().says(f"**{len(own.capped.pairs)} kept**")
    again.press("pairs_train")
    assert again.errors == []
    assert again.go("train").until("finished").run.config.train.pairs == page.value("brought").pairs.digest


def test_a_run_on_uploaded_pairs_goes_on_after_a_reload_as_if_nothing_had_happened(bring, visit):
    page = bring().press("pairs_train").go("train").set("steps", 2).press("run_start").until("finished")
    del page.at.session_state["brought_name"]  # held for the run alone
    page.at.session_state["brought_name"] = "another"
    again = reloaded(visit, page, {"run": page.run.id})
    assert again.errors == []
    assert not again.says("**Changed:**")
    again.press("run_start").once(lambda: again.run is not page.run).until("finished")
    assert again.run.config == page.run.config


def test_a_viewer_sees_a_run_on_uploaded_pairs_without_an_error_and_without_the_pairs(bring, visit):
    page = bring().press("pairs_train").go("train").set("steps", 2).press("run_start").until("finished")
    viewer = visit({"run": page.run.id})
    assert viewer.errors == []
    assert viewer.says("This run learns pairs that its owner brought")
    assert viewer.news["newest"] == 2
    assert not viewer.enabled("run_start")
    assert next(b for b in viewer.at.get("download_button") if b.key == "run_download").proto.disabled
    viewer.go("data")
    assert viewer.errors == []
    assert "brought" not in viewer.at.session_state
    assert not any(source in text for text in viewer.texts for source, _ in PAIRS)
    forged = visit({"task": "pairs", "pairs": page.run.config.train.pairs}).go("data")
    assert forged.says("Bring sentences with their translations")
