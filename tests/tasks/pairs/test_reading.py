"""Reading pairs: every format is detected from its content, and every line is accounted for."""

from __future__ import annotations

import codecs
import csv
import io
import unicodedata

import pytest

from transformer.tasks.pairs.reading import read_pairs


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


def test_a_quoted_cell_of_csv_may_hold_line_breaks_which_are_spaces_in_its_pair(read, some):
    file = io.StringIO()
    rows = [("One\ntwo", "Un\r\ndeux, trois"), *some(), ('Say "go"\n\nnow', "Va")]
    csv.writer(file).writerows(rows)
    reading = read(file.getvalue())
    assert reading.pairs == (("One two", "Un deux, trois"), *some(), ('Say "go" now', "Va"))
    assert reading.skipped == ()


def test_what_excel_saves_is_read_with_its_separator_line_heading_and_encoding(read, some):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=";", lineterminator="\r\n")
    writer.writerows([("English", "Français"), *some(), ("a;b", "œuf – 5 €")])
    reading = read(f"sep=;\r\n{file.getvalue()}".encode("cp1252"))
    assert reading.pairs == (*some(), ("a;b", "œuf – 5 €"))
    assert reading.heading == ("English", "Français")
    assert (reading.format, reading.encoding) == ("CSV with semicolons, 2 columns", "Windows-1252")


def test_a_column_of_row_numbers_before_both_sides_is_left_out(read, some):
    lines = ["id,en,fr", *(f"{i},{source},{target}" for i, (source, target) in enumerate(some()))]
    reading = read("\n".join(lines))
    assert (reading.pairs, reading.heading) == (tuple(some()), ("en", "fr"))
    assert reading.format == "CSV, 3 columns, of which 2 and 3"


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_only_line_feeds_end_lines(read, some, sign):
    odd = (f"one{sign}two", f"un{sign}{sign}deux")
    for form in FORMATS:
        assert read(FORMATS[form]([*some(), odd])).pairs[-1] == ("one two", "un deux"), form


def test_control_characters_and_byte_order_marks_are_removed(read, some):
    assert read(tsv([*some(), ("a\x07b\x7f\x9f", "\ufeffc\x1bd")])).pairs[-1] == ("ab", "cd")


@pytest.mark.parametrize(
    "first",
    [("english", "french"), ("EN", "FR"), ("Source", "Target"), ("(en)", "fr:"), ("deutsch", "中文")],
)
def test_a_first_line_of_two_names_of_languages_or_sides_is_a_heading(read, some, first):
    for form in FORMATS.values():
        reading = read(form([first, *some()]))
        assert (reading.heading, reading.pairs) == (first, tuple(some()))
    sources, targets = zip(first, *some(), strict=True)
    assert read("\n".join(sources), "\n".join(targets)).heading == first


@pytest.mark.parametrize(
    "first", [("French", "French"), ("Yes.", "No."), ("Text 1", "Source 1"), ("en route", "en chemin")]
)
def test_any_other_first_line_is_a_pair(read, some, first):
    reading = read(tsv([first, *some()]))
    assert (reading.pairs[0], reading.heading) == (first, None)


def test_whether_the_first_line_is_a_heading_can_be_said_and_changed_without_the_file(some):
    content = tsv([("en", "fr"), *some()]).encode()
    inferred, as_pair, other = (read_pairs([("a", content)], heading=said) for said in (None, False, True))
    assert inferred == other
    assert as_pair.pairs == (("en", "fr"), *some())
    assert as_pair.with_heading(True) == inferred
    assert inferred.with_heading(False) == as_pair
    assert read_pairs([("a", tsv(some()).encode())], heading=True).heading == some()[0]


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
