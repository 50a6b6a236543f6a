"""Unusable files are refused with a message that says what was found, and raise no other exception."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from transformer.errors import InputError
from transformer.tasks.pairs.reading import read_pairs


@pytest.fixture
def complaint(read):
    """Return the message with which the given files are refused."""

    def said(*files):
        with pytest.raises(InputError) as refused:
            read(*files)
        assert refused.value.field == "pairs_upload"
        return str(refused.value)

    return said


PAGE = "<!DOCTYPE html>\n<html><head><title>Pairs</title></head>\n<body>\n" + "<p>Go.\tVa !</p>\n" * 40
LINES = "".join(f"Sentence {i}\tPhrase {i}\n" for i in range(40))
OBJECTS = [{"src": "a", "tgt": "b"}] * 40


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "is not UTF-8 text (line 1)"),
        (gzip.compress(LINES.encode()), "is not UTF-8 text (line 1)"),
        (LINES.encode() + b"a\0b", "is not UTF-8 text (line 41)"),
        (LINES.encode("utf-16-le"), "is not UTF-8 text (line 1)"),
        ((LINES + "\0").encode("utf-16"), "is not UTF-8 text (line 41)"),
        ("Go.\tVa !\nSummer\tété\n".encode() + b"a\t\xc3", "is not UTF-8 text (line 3)"),
        ("Go.\tVa !\nSummer\té\x8d\n".encode("latin-1"), "is not UTF-8 text (line 2)"),
        ("Go.\tVa !\nSummer\té\x1b\n".encode("latin-1"), "is not UTF-8 text (line 2)"),
        (("Yes.\tПривет, как дела?\n" * 40).encode("windows-1251"), "is not UTF-8 text (line 1)"),
        (("Yes.\t纽约是一座城市。\n" * 40).encode("gbk"), "is not UTF-8 text (line 1)"),
        (("Yes.\t東京は大きな町です。\n" * 40).encode("shift-jis"), "is not UTF-8 text (line 1)"),
        (b"\xff\xfea\0b", "is not UTF-8 text (line 1)"),
        (b"", "“a.dat” is empty"),
        ("\ufeff \r\n\t\r\n", "“a.dat” is empty"),
        (PAGE, "“a.dat” is a saved web page (HTML)"),
        ("\ufeff\n " + PAGE.lower(), "a saved web page (HTML)"),
        ("<!-- saved from url=(0014)about:internet -->\n" + LINES, "a saved web page (HTML)"),
        ('<?xml version="1.0"?><tmx version="1.4"><tu/></tmx>', "XML"),
        ("Just a sentence\n" * 40, "such as “Just a sentence”"),
        ("<p>Go.</p>\n" * 40, "such as “<p>Go.</p>”"),
        ("Go. | Va !\n" * 40, "only one column"),
        ("Well, yes\nno\nor\n" * 20, "only one column"),
        (",".join(["a"] * 33) + "\n" * 40, "“a.dat” has 33 columns"),
        ("sep=;\n" + "a,b\n" * 40, "has only one column, such as “a,b”"),
        ("#separator:tab\n#html:false\n", "only one column"),
        ("a" * 20_001, "only one column"),
        ("[" * 100_000 + "]" * 100_000, "only one column"),
        (json.dumps(OBJECTS), "or JSON; save its table as text"),
        (json.dumps(OBJECTS, indent=2), "or JSON; save its table as text"),
        ("\ufeff" + "\n".join(map(json.dumps, OBJECTS)), "or JSON; save its table as text"),
        ("a\tb\tc\td\n" * 40, "“a.dat” has 4 columns, such as “a b c d”; the limit is 3, or 4 with numbers"),
        ("1\tb\tc\td\n" * 40, "has 4 columns"),
        ("a,b,c,d,e\n" * 40, "has 5 columns, such as “a,b,c,d,e”; the limit is 3"),
        (
            "1,b,2,d,e\n" * 40,
            "Keep the two with the sentences and their translations, or name them in a heading",
        ),
    ],
)
def test_a_file_that_is_not_a_table_of_pairs_is_refused_with_what_was_found(complaint, content, found):
    assert found in complaint(content)


def test_three_quarters_of_the_lines_must_have_the_same_format(read, complaint):
    good, bad = [f"s{i}\tt{i}" for i in range(75)], [f"s{i}" for i in range(26)]
    assert read("\n".join(good + bad[:25])).read == 75
    assert "Only 74% of the lines of “a.dat” are TSV, 2 columns; line 76 is “s0”" in complaint(
        "\n".join(good + bad)
    )


def test_fewer_than_20_pairs_are_refused_with_their_number_and_what_was_skipped(read, complaint):
    lines = [f"s{i}\tt{i}\n" for i in range(20)]
    assert read("".join(lines)).read == 20
    said = complaint("".join(lines[:19]) + lines[0] * 3 + "x\t\n")
    for part in ("19 usable pairs", "at least 20", "3 × a repeated pair; 1 × an empty side"):
        assert part in said


@pytest.mark.parametrize("n", [0, 1])
def test_a_heading_above_no_pair_or_one_is_refused_with_its_names(complaint, n):
    said = complaint("english,french\n" + "Go.,Va !\n" * n)
    assert f"has {n} usable pairs" in said
    assert "First line taken as heading: english, french." in said


LONG = "".join(f'"Sentence {i}, long","Phrase {i}"\n' for i in range(40))


@pytest.mark.parametrize(
    "damaged",
    [
        '"Hello,Bonjour',
        'Hello,"Bonjour',
        '"Hello, ""Tom"",Bonjour',
        '"Hello\nTom" and Ann,Bonjour',
        '"Hello" he said, "Bonjour',
        '"Hello' + "\n" * 1200 + '",Bonjour',
    ],
)
def test_an_unclosed_quotation_mark_in_csv_is_refused_with_its_line(complaint, damaged):
    rest = LONG.splitlines(keepends=True)
    for before in (0, 9, 40):
        text = "".join(rest[:before]) + damaged + "\n" + "".join(rest[before:])
        assert (
            "“a.dat” has a quotation mark that is not closed in the row that starts in line "
            f"{before + 1}, “{damaged.splitlines()[0]}”"
        ) in complaint(text)


@pytest.mark.parametrize(("line", "n"), [('x","y\n', 299_999), ('x","' + "y" * 10_000 + "\n", 1_900)])
def test_an_unclosed_quotation_mark_is_found_in_seconds_though_each_line_closes_one(complaint, line, n):
    begun = time.process_time()
    assert "starts in line 1," in complaint(line * n)
    assert time.process_time() - begun < 15


def test_two_files_must_have_the_same_number_of_lines_and_one_column_each(complaint):
    many, few = "word\n" * 31, "mot\n" * 29
    assert complaint(many, few).startswith("“a.dat” has 31 lines and “b.dat” has 29")
    assert complaint(many, LINES).startswith("“b.dat” has several columns")
    assert "or JSON" in complaint('{"src": "a", "tgt": "b"}\n' * 31, many)
    assert "“b.dat” is empty" in complaint(many, "\n")


@pytest.mark.parametrize("n", [0, 3])
def test_no_file_and_three_files_are_refused(n):
    with pytest.raises(InputError, match=f"^{n} files are given"):
        read_pairs([("x", LINES.encode())] * n)


def test_uploads_are_limited_to_20_mb_and_300_000_lines(complaint):
    content = b"a" * 10_000_001
    assert complaint(content, content).startswith("The upload has 20.0 MB; the limit is 20 MB")
    assert "too few" not in complaint(content[:-1]), "looked at"
    assert "has 300,001 lines; the limit is 300,000" in complaint("a\tb\n" * 300_000 + "\n")
    assert "has 1 usable pairs" in complaint("a\tb\n" * 300_000)


def test_a_long_or_odd_file_name_is_shortened():
    with pytest.raises(InputError) as refused:
        read_pairs([("x\0\n" * 99, b"")])
    assert str(refused.value).startswith("“" + "x " * 19 + "x…” is empty.")
    with pytest.raises(InputError, match="^“the file” is empty"):
        read_pairs([("", b"")])
