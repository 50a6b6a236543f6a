"""Reading pairs: every format, told by what is in it, and every line accounted for."""

from __future__ import annotations

import codecs
import json
import unicodedata

import pytest

from transformer.tasks.pairs.reading import Example, Skipped


def tsv(pairs, *, end="\n"):
    return "".join("\t".join(row) + end for row in pairs)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


FORMATS = {
    "TSV, 2 columns": tsv,
    "TSV, 3 columns, of which 1 and 2": lambda p: tsv((s, t, "CC-BY 2.0 Attribution: x #1") for s, t in p),
    "TSV, 3 columns, of which 2 and 3": lambda p: tsv((str(i), *pair) for i, pair in enumerate(p)),
    "TSV, 4 columns, of which 2 and 4": lambda p: tsv((f"{i}", s, f"9{i}", t) for i, (s, t) in enumerate(p)),
    "TSV, 2 columns, with header": lambda p: "English\tFrench\n" + tsv(p),
    "TSV, 4 columns, of which 2 and 4, with header": lambda p: (
        "id\ten\tid\tfr\n" + tsv((f"{i}", s, f"9{i}", t) for i, (s, t) in enumerate(p))
    ),
    "CSV, 2 columns": lambda p: "".join(f"{s},{t}\n" for s, t in p),
    "CSV, 2 columns, with header": lambda p: (
        "source,target\n" + "".join(f"{quoted(s)}, {quoted(t)} \n" for s, t in p)
    ),
    "CSV with semicolons, 2 columns, with header": lambda p: (
        "en; fr\n" + "".join(f"{s};{quoted(t)}\n" for s, t in p)
    ),
    "JSON lines with “src” and “tgt”": lambda p: "".join(
        json.dumps({"src": s, "tgt": t}) + "\n" for s, t in p
    ),
}
AS_SAVED = {
    "plain": str.encode,
    "bom": lambda text: codecs.BOM_UTF8 + text.encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16-be": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "cr": lambda text: text.replace("\n", "\r").encode(),
    "crcrlf": lambda text: text.replace("\n", "\r\r\n").encode(),
    "open-end": lambda text: text.removesuffix("\n").encode(),
    "nfd": lambda text: unicodedata.normalize("NFD", text).encode(),
    "nbsp": lambda text: text.replace("été !", "été\u00a0!").encode(),
    "odd-spaces": lambda text: text.replace("été !", "\u202fété\u200b \u202f!\u00ad").encode(),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("saved", AS_SAVED)
def test_each_format_is_told_by_its_content_however_it_was_saved(read, some, form, saved):
    reading = read(AS_SAVED[saved](FORMATS[form](some())))
    assert (reading.format, reading.pairs) == (form, tuple(some()))
    assert (reading.read, reading.seen, reading.skipped) == (30, 30, ())


def test_two_files_are_joined_line_by_line_and_an_empty_line_moves_no_other(read, some):
    sources, targets = (list(side) for side in zip(*some(), strict=True))
    sources[3] = targets[7] = targets[9] = sources[9] = ""
    sources[5] = sources[5].replace(" ", "\t")
    reading = read("\n".join(sources), "\n".join(targets) + "\n")
    assert reading.format == "two aligned files"
    assert reading.pairs == tuple(pair for i, pair in enumerate(some()) if i not in (3, 7, 9))
    assert reading.skipped == (
        Skipped("an empty side", 2, (Example(4, targets[3]), Example(8, sources[7]))),
        Skipped("an empty line", 1, (Example(10, ""),)),
    )


def test_quotation_marks_in_tsv_are_plain_characters_and_a_leading_one_swallows_nothing(read, some):
    odd = [('"Go, he said.', "« Va ! »"), ('Say "hi"', 'Dis "salut"'), ('""', '"'), ('"a"', '"b"')]
    assert read(tsv(some()[:15] + odd + some()[15:])).pairs == tuple(some()[:15] + odd + some()[15:])


def test_quoted_cells_of_csv_may_hold_commas_and_quotation_marks(read, some):
    odd = [("Yes, I do.", "Oui, bien sûr."), ('Say "hi", Tom', 'Dis "salut"')]
    reading = read("".join(f"{quoted(s)}, {quoted(t)}\n" for s, t in [*odd, *some()]))
    assert reading.pairs == (*odd, *some())


def test_a_quotation_mark_in_csv_that_nobody_closes_takes_no_other_line_along(read, some):
    lines = [f"{quoted(s)},{t}" for s, t in some()]
    reading = read("\n".join([*lines[:9], '"Hello,Bonjour', *lines[9:]]))
    assert reading.pairs == tuple(some())
    assert reading.skipped == (
        Skipped("a different format than most lines", 1, (Example(10, '"Hello,Bonjour'),)),
    )


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_only_line_feeds_end_lines(read, some, sign):
    odd = (f"one{sign}two", f"un{sign}{sign}deux")
    for form in FORMATS:
        assert read(FORMATS[form]([*some(), odd])).pairs[-1] == ("one two", "un deux"), form


def test_controls_and_halves_of_characters_are_left_out(read, some):
    assert read(tsv([*some(), ("a\x07b\x7f\x9f", "\ufeffc\x1bd")])).pairs[-1] == ("ab", "cd")
    odd = '{"src": "a\\ud800\\u0000b", "tgt": "e\\u0301\\n\\tx"}\n'
    written = "".join(json.dumps({"src": s, "tgt": t}) + "\n" for s, t in some())
    assert read(written + odd).pairs[-1] == ("ab", "é x")


@pytest.mark.parametrize(
    ("header", "swapped"),
    [
        ("source,target", False),
        ("target,source", True),
        ("fr,en", False),
        ("sentence,translation", False),
        ("translated_text,text", True),
        ("sentence_en,sentence_fr", False),
        ("translation_en,translation_fr", False),
        ('"SRC","TGT" ', False),
    ],
)
def test_the_names_of_a_header_tell_the_sides(read, some, header, swapped):
    reading = read("\n".join([header, *(f"{s},{t}" for s, t in some())]))
    assert reading.pairs == tuple((t, s) if swapped else (s, t) for s, t in some())
    assert (reading.format, reading.seen) == ("CSV, 2 columns, with header", 30)


def test_a_header_finds_its_columns_among_others(read, some):
    text = ",tgt,score,user,src,note\n" + "".join(f"{i},{t},0.5,me,{s},\n" for i, (s, t) in enumerate(some()))
    assert read(text).pairs == tuple(some())


@pytest.mark.parametrize(
    "first", [("French", "French"), ("English", "l'anglais"), ("Yes.", "No."), ("Text 1", "Source 1")]
)
def test_a_first_pair_is_no_header(read, some, first):
    assert read(tsv([first, *some()])).pairs[0] == first


def test_numbers_may_be_what_is_learned(read):
    pairs = tuple((str(i), f"number {i}") for i in range(30))
    assert read(tsv(pairs)).pairs == pairs


@pytest.mark.parametrize(
    "written",
    [
        lambda s, t: {"target": t, "id": "x7", "source": s},
        lambda s, t: {"id": 3, "en": s, "fr": t, "score": 0.5},
        lambda s, t: {"id": "7", "translation": {"en": s, "fr": t}},
        lambda s, t: {"left": s, "right": t, "n": 1},
        lambda s, t: {"fr": t, "en": s} if s[-2] == "3" else {"en": s, "fr": t},
    ],
)
def test_json_lines_may_name_the_sides_in_many_ways(read, some, written):
    text = "".join(json.dumps(written(s, t), ensure_ascii=False) + "\n" for s, t in some())
    assert read(text).pairs == tuple(some())
    assert read(text.replace("}\n", "},\n")).pairs == tuple(some()), "commas between the lines"


def test_every_defect_is_counted_with_its_first_examples(read, some):
    bad = ["", "alone", "a\tb\tc", "x\t", "\ty", " \u00a0\tz", "u" * 1001 + "\tv", "w" * 20_000 + "\tv", " "]
    again = ("Look at the  3 cats!", "Regarde les 3 chats été\u202f!")
    text = tsv(some()) + "\n".join(bad) + "\n" + tsv([*some()[:4], again])
    reading = read(text)
    assert reading.pairs == tuple(some())
    assert reading.skipped == (
        Skipped("a repeated pair", 5, tuple(Example(40 + i, " ".join(some()[i])) for i in range(3))),
        Skipped("an empty side", 3, (Example(34, "x"), Example(35, "y"), Example(36, "z"))),
        Skipped("an empty line", 2, (Example(31, ""), Example(39, ""))),
        Skipped("a different format than most lines", 2, (Example(32, "alone"), Example(33, "a b c"))),
        Skipped(
            "a sentence longer than 1,000 characters",
            2,
            (Example(37, "u" * 59 + "…"), Example(38, "w" * 59 + "…")),
        ),
    )
    assert reading.seen == 44 == reading.read + sum(some.count for some in reading.skipped)


def test_what_is_no_pair_in_json_lines_is_counted(read, some):
    nested = '{"a":' * 3000 + "1" + "}" * 3000
    number = '{"a": ' + "9" * 5000
    bad = [nested, number, '{"src": "a"}', '{"src": 1, "tgt": "b"}', "{broken", '["a", "b"]', "{" * 5000]
    good = "".join(json.dumps({"src": s, "tgt": t}) + "\n" for s, t in some())
    reading = read("\n".join(bad) + "\n" + good)
    assert reading.pairs == tuple(some())
    assert [(some.reason, some.count) for some in reading.skipped] == [
        ("a different format than most lines", 7)
    ]


def test_what_is_odd_and_no_defect(read, some):
    more = [("Go.", "Va !"), ("Go.", "Marche."), ("Tom", "Tom"), ("a" * 1000, "b")]
    reading = read(tsv(some() + more, end="\n\n"))
    assert reading.pairs == tuple(some() + more)
    assert [one.reason for one in reading.skipped] == ["an empty line"], "a line between every two"
