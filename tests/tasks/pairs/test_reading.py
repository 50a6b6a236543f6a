"""Reading pairs: every format is detected from its content, and every line is accounted for."""

from __future__ import annotations

import codecs
import unicodedata

import pytest


def tsv(pairs, *, end="\n"):
    return "".join("\t".join(row) + end for row in pairs)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


FORMATS = {
    "TSV, 2 columns": tsv,
    "TSV, 3 columns, of which 1 and 2": lambda p: tsv((s, t, "CC-BY 2.0 Attribution: x #1") for s, t in p),
    "TSV, 4 columns, of which 2 and 4": lambda p: tsv((f"{i}", s, f"9{i}", t) for i, (s, t) in enumerate(p)),
    "CSV, 2 columns": lambda p: "".join(f"{s},{t}\n" for s, t in p),
    "CSV, 3 columns, of which 1 and 2": lambda p: "".join(f"{quoted(s)}, {quoted(t)} ,x\n" for s, t in p),
    "CSV with semicolons, 2 columns": lambda p: "".join(f"{s};{quoted(t)}\n" for s, t in p),
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
def test_each_format_is_detected_from_its_content_however_it_was_saved(read, some, form, saved):
    reading = read(AS_SAVED[saved](FORMATS[form](some())))
    assert (reading.format, reading.pairs) == (form, tuple(some()))
    assert (reading.read, reading.skipped) == (30, ())


def test_two_files_are_joined_line_by_line_and_an_empty_line_shifts_no_other(read, some):
    sources, targets = (list(side) for side in zip(*some(), strict=True))
    sources[3] = targets[7] = targets[9] = sources[9] = ""
    sources[5] = sources[5].replace(" ", "\t")
    reading = read("\n".join(sources), "\n".join(targets) + "\n")
    assert reading.format == "two aligned files"
    assert reading.pairs == tuple(pair for i, pair in enumerate(some()) if i not in (3, 7, 9))
    assert reading.skipped == (("an empty side", 2), ("an empty line", 1))


def test_quotation_marks_in_tsv_are_plain_characters_even_at_the_start_of_a_cell(read, some):
    odd = [('"Go, he said.', "« Va ! »"), ('Say "hi"', 'Dis "salut"'), ('""', '"'), ('"a"', '"b"')]
    assert read(tsv(some()[:15] + odd + some()[15:])).pairs == tuple(some()[:15] + odd + some()[15:])


def test_quoted_cells_of_csv_may_hold_commas_and_quotation_marks(read, some):
    odd = [("Yes, I do.", "Oui, bien sûr."), ('Say "hi", Tom', 'Dis "salut"')]
    reading = read("".join(f"{quoted(s)}, {quoted(t)}\n" for s, t in [*odd, *some()]))
    assert reading.pairs == (*odd, *some())


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_only_line_feeds_end_lines(read, some, sign):
    odd = (f"one{sign}two", f"un{sign}{sign}deux")
    for form in FORMATS:
        assert read(FORMATS[form]([*some(), odd])).pairs[-1] == ("one two", "un deux"), form


def test_control_characters_and_byte_order_marks_are_removed(read, some):
    assert read(tsv([*some(), ("a\x07b\x7f\x9f", "\ufeffc\x1bd")])).pairs[-1] == ("ab", "cd")


def test_one_side_may_consist_of_numbers(read):
    pairs = tuple((str(i), f"number {i}") for i in range(30))
    assert read(tsv(pairs)).pairs == pairs


def test_every_defect_is_counted(read, some):
    bad = ["", "alone", "a\tb\tc", "x\t", "\ty", " \u00a0\tz", "u" * 1001 + "\tv", "w" * 20_000 + "\tv", " "]
    again = ("Look at the  3 cats!", "Regarde les 3 chats été\u202f!")
    text = tsv(some()) + "\n".join(bad) + "\n" + tsv([*some()[:4], again])
    reading = read(text)
    assert reading.pairs == tuple(some())
    assert reading.skipped == (
        ("a repeated pair", 5),
        ("an empty side", 3),
        ("an empty line", 2),
        ("a different format than most lines", 2),
        ("a sentence longer than 1,000 characters", 2),
    )
    assert reading.read + reading.n_skipped == 44


def test_unusual_but_valid_pairs_are_kept(read, some):
    more = [("Go.", "Va !"), ("Go.", "Marche."), ("Tom", "Tom"), ("a" * 1000, "b")]
    reading = read(tsv(some() + more, end="\n\n"))
    assert reading.pairs == tuple(some() + more)
    assert [reason for reason, _ in reading.skipped] == ["an empty line"], "a line between every two"
