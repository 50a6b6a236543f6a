"""Text as tokens, the vocabularies, and the user's own tokenizer."""

from __future__ import annotations

import html
import re

from tokenizers import Tokenizer, models, pre_tokenizers

from pages.own_data import tokenizer as own_tokenizer
from tests.pages.own_data.conftest import examples
from transformer.errors import InputError


def chips(visitor, row):
    """Return the tokens of a row with their ids and kinds."""
    shown = [text for text in visitor.texts if "hl-chips" in text and "<style>" not in text][row]
    found = re.findall(r'<span class="(.*?)"><b>(.*?)</b><small>(.*?)</small>', shown)
    return [(html.unescape(text), number, kind) for kind, text, number in found]


def test_the_chosen_example_is_shown_as_tokens_with_their_ids(data):
    page = data()
    page.at.radio(key="data_trained").set_value(4)
    page.look()
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
    assert page.says("<b>&lt;</b>")  # text, not a tag of the page
    assert page.says("As an answer: 7 tokens, **7 unknown**")


def test_the_vocabularies_can_be_searched_and_count_the_tokens_in_training(data):
    page = data(task="dates")
    read, written = (page.at.dataframe[i].value for i in range(2))
    assert list(read.columns) == ["token", "id", "times"]
    assert list(read["token"][:4]) == ["[PAD]", "[SOS]", "[EOS]", "[UNK]"]
    assert {"j", "y", "1"} <= set(read["token"])
    assert set(written["token"][4:]) == set("0123456789-")
    assert set(read.loc[read["token"] == "[SOS]", "times"]) == {1000}  # once in each example
    assert page.says(f"Vocabulary of questions: {len(read) - 4} tokens** and 4 special ones")


def tokenizer_json(*words):
    backend = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(("<unk>", *words))}, unk_token="<unk>")
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return backend.to_str()


def upload_tokenizer(visitor, name, content):
    visitor.at.file_uploader(key="tokenizer_upload").set_value((name, content, "application/json"))
    return visitor.look()


def test_an_uploaded_tokenizer_is_used_and_an_invalid_one_does_not_replace_it(data):
    page = data(task="en-fr", tokenizer_kind="file")
    assert page.errors == []
    assert page.says("There is no tokenizer.json yet")
    good = tokenizer_json("the", "cat", "le", "chat", "sees")
    upload_tokenizer(page, "mine.json", good.encode())
    assert page.errors == []
    assert page.says("In use: **mine.json**")
    page.set("data_text", "the cat sees nobody")
    assert [text for text, _, _ in chips(page, 0)[1:-1]] == ["the", "cat", "sees", "nobody"]
    assert [kind for _, _, kind in chips(page, 0)[1:-1]] == ["", "", "", "unknown"]
    for name, content in (("bad.json", b'{"a": 1}'), ("picture.png", b"\x89PNG\xff")):
        upload_tokenizer(page, name, content)
        assert len(page.errors) == 1
        assert page.says("In use: **mine.json**")
    assert [text for text, _, _ in chips(page, 0)[1:-1]] == ["the", "cat", "sees", "nobody"]


def test_a_tokenizer_is_downloaded_by_its_name_and_a_failure_is_reported(data, monkeypatch):
    asked = []

    def from_hub(name):
        asked.append(name)
        if name == "nobody/nothing":
            raise InputError("It cannot be downloaded.", "tokenizer")
        return tokenizer_json("the", "le")

    monkeypatch.setattr(own_tokenizer, "from_hub", from_hub)
    page = data(task="en-fr", tokenizer_kind="file")

    def fetch(name):
        page.at.text_input(key="tokenizer_name").set_value(name)
        page.press("tokenizer_fetch")

    for name in ("", "../passwd", "https://example.org/x", "nobody/nothing"):
        fetch(name)
        assert any(
            "is not a tokenizer name" in error or "cannot be downloaded" in error for error in page.errors
        )
    assert asked == ["nobody/nothing"]
    fetch("some/my_words")
    assert page.errors == []
    assert r"In use: **some/my\_words**" in [caption.value for caption in page.at.caption]  # no emphasis
