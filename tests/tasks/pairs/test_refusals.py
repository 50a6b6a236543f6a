"""Files that cannot be used: what was found, what is expected, and no other exception."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

import pytest

from transformer.errors import InputError
from transformer.tasks.pairs import limits
from transformer.tasks.pairs.reading import read_pairs


@pytest.fixture
def complaint(read):
    """The text of the refusal of these files."""

    def said(*files):
        with pytest.raises(InputError) as refused:
            read(*files)
        assert refused.value.field == "pairs_upload"
        return str(refused.value)

    return said


def zipped():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("fra.txt", "Go.\tVa !\n" * 40)
    return content.getvalue()


PAGE = "<!DOCTYPE html>\n<html><head><title>Pairs</title></head>\n<body>\n" + "<p>Go.\tVa !</p>\n" * 40
LINES = "".join(f"Sentence {i}\tPhrase {i}\n" for i in range(40))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (PAGE, "“a.dat” is a saved web page (HTML), not its sentences. Download the file itself."),
        ("\ufeff\n " + PAGE.lower(), "is a saved web page (HTML)"),
        ("<!-- saved from url=(0014)about:internet -->\n" + LINES, "is a saved web page (HTML)"),
        ("From: <Saved by Blink>\nMIME-Version: 1.0\n" + LINES, "is a saved web page (MHTML) or a mail"),
        ('<?xml version="1.0"?><tmx version="1.4"><tu/></tmx>', "is XML"),
        ("<tmx>\n" + "<tu>a</tu>\n" * 40, "is XML"),
        ("<p>Go.</p>\n" * 40, "is full of tags, as HTML and XML are"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "is a PNG picture"),
        (b"\xff\xd8\xff\xe0 JFIF", "is a JPEG picture"),
        (b"%PDF-1.7\n" + LINES.encode(), "is a PDF document; copy its sentences into a table"),
        (zipped(), "is a zip archive or an Office document; unpack it, or save its table as CSV (UTF-8)"),
        (gzip.compress(LINES.encode()), "is a gzip archive; unpack it"),
        (b"{\\rtf1 Go.\tVa !}\n" * 40, "is an RTF document"),
        (LINES.encode() + b"a\0b", "is no text: there is a byte 0 at position 861"),
        (LINES.encode("utf-16-le"), "If it is text in UTF-16, save it as UTF-8"),
        ((LINES + "\0").encode("utf-16"), "is no text: it has characters of code 0"),
        (b"", "“a.dat” is empty. Expected is UTF-8 text with a sentence and its translation on each line"),
        ("\ufeff \r\n\t\r\n", "“a.dat” is empty."),
    ],
)
def test_what_is_no_table_is_named_for_what_it_is(complaint, content, found):
    said = complaint(content)
    assert found in said
    assert "Expected is UTF-8 text" in said


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("Go.\tVa !\nSummer\té\n".encode("latin-1"), "not in UTF-8: the byte 0xE9 at position 16 (line 2)"),
        (b"\xef\xbb\xbfGo.\tVa\x80", "not in UTF-8: the byte 0x80 at position 9 (line 1)"),
        (b"Go.\tVa !\n\xc3", "not in UTF-8: the byte 0xC3 at position 9 (line 2)"),
        (b"\xff\xfea\0b", "not in UTF-16: the byte 0x62 at position 4 (line 1)"),
    ],
)
def test_bytes_of_another_encoding_are_shown_with_their_place_and_a_way_out(complaint, content, where):
    said = complaint(content)
    assert where in said
    assert "Save it as UTF-8" in said


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            "Just a sentence\n" * 40,
            "has one column only, such as “Just a sentence”: its translations are missing",
        ),
        (
            "Well, yes\nno\n" * 20 + "or, so\n",
            "has commas or semicolons, but 51% of its lines have 2 columns",
        ),
        ("Go. | Va !\n" * 40, "The columns of “a.dat” seem to be separated by bars (“|”)"),
        ("Go. = Va !\n" * 40, "seem to be separated by equals signs (“=”)"),
        ("Go. - Va !\n" * 40, "seem to be separated by dashes (“ - ”)"),
        ("Go.     Va !\n" * 40, "seem to be separated by several spaces"),
        ("a\tb\tc\td\n" * 40, "is TSV with 4 columns, and nothing tells which two hold the sentences"),
        ("a,b,c,d,e\n" * 40, "is CSV with 5 columns, and nothing tells"),
        (
            "a\tb\na\tb\tc\nd\n" * 40,
            "looks like TSV, but its lines have no steady number of columns: only 33% have",
        ),
        ("a" * 20_001, "Every line of “a.dat” is longer than 20,000 characters"),
    ],
)
def test_columns_that_are_not_clear_are_refused_with_what_was_found(complaint, content, found):
    said = complaint(content)
    assert found in said
    assert "Expected" in said


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (json.dumps([{"src": "a", "tgt": "b"}] * 40), "is a document in JSON, not lines of objects"),
        (json.dumps([{"src": "a", "tgt": "b"}] * 40, indent=2), "is a document in JSON"),
        (json.dumps({"data": [["a", "b"]] * 40}, indent="\t"), "is a document in JSON"),
        (json.dumps({"data": [["a", "b"]] * 40}), "is a document in JSON"),
        ("[" * 100_000 + "]" * 100_000, "longer than 20,000 characters"),
        ("[[" * 1000 + "]]" * 1000, "is a document in JSON"),
        (
            '{"a": "b", "c": "d", "e": "f"}\n' * 40,
            "it is not clear which two texts of a line belong together",
        ),
        ('{"en": "a", "fr": "b", "de": "c"}\n' * 40, "it is not clear which two texts"),
        ('{"a": 1}\n' * 40, "it is not clear which two texts"),
        ("{" * 5000 + "}\n" + "{1}\n" * 40, "it is not clear which two texts"),
        (
            '{"src": "a", "tgt": "b"}\n' * 20 + '{"x": "a"}\n' * 10,
            'Only 20 of 30 lines of “a.dat” are JSON objects with “src” and “tgt”; line 21 is “{"x": "a"}”',
        ),
    ],
)
def test_json_that_is_no_lines_of_objects_with_two_texts_is_refused(complaint, content, found):
    said = complaint(content)
    assert found in said
    if "longer" not in found:
        assert said.endswith('Expected is an object such as {"src": "Go.", "tgt": "Va !"} on each line.')


def test_three_quarters_of_the_lines_must_have_the_form(read, complaint):
    good, bad = [f"s{i}\tt{i}" for i in range(75)], [f"s{i}" for i in range(26)]
    assert read("\n".join(good + bad[:25])).read == 75
    assert "only 74% have 2, and line 76 has 1 (“s0”)" in complaint("\n".join(good + bad))


def test_fewer_than_20_pairs_are_refused_with_their_number_and_what_was_left_out(read, complaint):
    lines = [f"s{i}\tt{i}\n" for i in range(20)]
    assert read("".join(lines)).read == 20
    said = complaint("".join(lines[:19]) + lines[0] * 3 + "x\t\n")
    assert said.startswith(
        "“a.dat”, read as TSV, 2 columns, has 19 pairs that can be used; at least 20 are needed (left out: "
        "3 × the same pair as before; 1 × an empty side). Add more sentences."
    )


def test_two_files_must_have_as_many_lines_and_a_language_each(complaint):
    many, few = "word\n" * 31, "mot\n" * 29
    assert complaint(many, few).startswith("“a.dat” has 31 lines and “b.dat” has 29; two files must have")
    assert complaint(many, many).startswith("“a.dat” and “b.dat” hold the same text")
    assert complaint(many, LINES).startswith("“b.dat” has columns. Of two files each must hold one language")
    assert complaint('{"src": "a", "tgt": "b"}\n' * 31, many).startswith("“a.dat” has columns.")
    assert "“b.dat” is empty" in complaint(many, "\n")


def test_no_file_and_three_files_are_refused():
    for n in (0, 3):
        with pytest.raises(InputError, match=f"^{n} files are given; upload one with both languages, or two"):
            read_pairs([("x", b"a\tb\n" * 40)] * n)


def test_files_of_20_mb_are_the_largest(complaint):
    content = b"a" * 10_000_001
    assert complaint(content, content).startswith(
        "20.0 MB is too much; at most 20 MB can be read. Upload a part"
    )
    assert "20,000 characters" in complaint(content[:-1] * 2), "large enough to be looked at"


def test_too_many_lines_are_refused_with_their_number(monkeypatch, read, complaint):
    monkeypatch.setattr("transformer.tasks.pairs.file_text.MAX_LINES", 40)
    assert limits.MAX_LINES == 300_000
    assert read(LINES).read == 40
    assert complaint(LINES + "\n").startswith(
        "“a.dat” has 41 lines; at most 40 can be read. Upload a part of it."
    )


def test_a_long_or_odd_file_name_is_shortened():
    with pytest.raises(InputError) as refused:
        read_pairs([("x\0\n" * 99, b"")])
    assert str(refused.value).startswith("“" + "x " * 19 + "x…” is empty.")
    with pytest.raises(InputError, match="^“the file” is empty"):
        read_pairs([("", b"")])
