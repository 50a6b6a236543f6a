"""Tables as people save them: headings, line breaks in cells, quotation marks, Windows-1252, columns."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzzing import profile
from transformer.tasks.pairs.reading import read_pairs, remarks
from transformer.tasks.pairs.text import plain

SOME = [(f"Look at {i} cats", f"Regarde {i} chats") for i in range(30)]
CELL = st.text(alphabet="ab é'\",;\n", min_size=1, max_size=12).filter(plain)


def written(rows, **form):
    """Return what Python's own writer makes of these rows."""
    out = io.StringIO(newline="")
    csv.writer(out, **form).writerows(rows)
    return out.getvalue()


def tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


@profile(200)
@given(
    st.lists(st.tuples(CELL, CELL), max_size=8),
    st.sampled_from(",;\t"),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_pythons_writer_saves_is_read_with_line_breaks_as_spaces(odd, delimiter, quoting, end):
    shown = [('Say "hi"\nTom', "Dis\n\nsalut"), *odd]  # shows that marks enclose cells, in TSV too
    text = written([*SOME, *shown, ("A", "B")], delimiter=delimiter, quoting=quoting, lineterminator=end)
    reading = read_pairs([("x", text.encode())])
    wanted = dict.fromkeys([*SOME, *((plain(s), plain(t)) for s, t in shown), ("A", "B")])
    assert reading.pairs == tuple(wanted)
    assert reading.line_breaks == sum(cell.count("\n") for pair in shown for cell in pair)
    assert reading.heading is None


def test_excels_file_with_semicolons_in_windows_1252_is_read_and_says_so(read):
    rows = b"".join(b"Summer %d;\xe9t\xe9 %d\r\n" % (i, i) for i in range(30))
    odd = b'"He said ""yes""; twice";\xab\xa0Oui\xa0\xbb\x85\r\n"Two\nlines";d\x92accord\r\n'
    reading = read(b"sep=;\r\nen;fr\r\n" + odd + rows)
    assert reading.pairs[:3] == (
        ('He said "yes"; twice', "« Oui »…"),
        ("Two lines", "d’accord"),
        ("Summer 0", "été 0"),
    )
    assert (reading.read, reading.format) == (32, "CSV with semicolons, 2 columns")
    assert remarks(reading) == [
        "First line taken as heading: en, fr.",
        "Not UTF-8, so read as Windows-1252: “a.dat”. If letters are wrong, save the table as UTF-8.",
        "Line breaks in cells, read as spaces: 1.",
        "Lines skipped: 1 × a setting of the program that saved the table.",
    ]


def test_of_two_files_only_the_one_that_is_not_utf_8_is_read_as_windows_1252(read):
    sources, targets = ("\n".join(f"{word} {i}" for i in range(30)) for word in ("ñandú", "Größe"))
    reading = read(sources, targets.encode("windows-1252"))
    assert reading.pairs[7] == ("ñandú 7", "Größe 7")
    assert reading.western == ("b.dat",)


HEADINGS = [
    *[("english", "french"), ("EN", "fr"), (" Source ", "Target"), ("src", "tgt"), ("question", "answer")],
    *[("from", "to"), ("input", "output"), ("Français", "English"), ("Deutsch", "Italiano")],
    *[("中文", "English"), ("Английский", "Русский"), ("Front", "Back"), ("Frage", "Antwort")],
    *[
        ("en-US", "fr_FR"),
        ("zh-Hans", "en"),
        ("source_text", "target_text"),
        ("translation.en", "translation.it"),
    ],
    *[("English sentence", "French sentence"), ("Text (English)", "Text (Spanish)"), ("word", "plural")],
    *[("sentence1", "sentence2"), ("Spalte 1", "Spalte 2"), ("English", "Translation"), ("eng", "fra")],
    *[("Türkçe", "português"), ("text", "label")],
]
NO_HEADINGS = [
    *[("French", "French"), ("English", "anglais"), ("French", "Français."), ("Yes.", "No.")],
    *[("source", "source"), ("word", "mot"), ("from", "de"), ("Text 1", "Source 1"), ("is", "est")],
    *[("English", "British"), ("the source", "the target"), ("Question?", "Answer!"), ("en", "French")],
    *[("source" * 10, "target"), ("to", "nach"), ("a", "b")],
]


@pytest.mark.parametrize("first", HEADINGS)
def test_a_first_line_that_names_two_languages_or_sides_is_a_heading(read, first):
    for text in (tsv([first, *SOME]), written([first, *SOME]), "\n\n" + tsv([first, *SOME])):
        reading = read(text)
        assert reading.heading == tuple(cell.strip() for cell in first)
        assert reading.pairs == tuple(SOME)
    two = read(*("\n".join(side) for side in zip(first, *SOME, strict=True)))
    assert (two.heading, two.pairs) == (reading.heading, reading.pairs)


@pytest.mark.parametrize("first", NO_HEADINGS)
def test_any_other_first_line_is_a_pair(read, first):
    for text in (tsv([first, *SOME]), written([first, *SOME])):
        reading = read(text)
        assert reading.heading is None
        assert reading.pairs == (first, *SOME)


def test_names_below_the_first_line_are_a_pair(read):
    assert read(tsv([*SOME, ("english", "french")])).pairs == (*SOME, ("english", "french"))


def test_the_switch_decides_instead_of_the_names_in_both_directions(read):
    named, unnamed = ("english", "french"), ("Go.", "Va !")
    for files in ([tsv([named, *SOME])], ["\n".join(side) for side in zip(named, *SOME, strict=True)]):
        reading = read(*files, heading=False)
        assert (reading.heading, reading.pairs) == (None, (named, *SOME))
    for files in ([tsv([unnamed, *SOME])], ["\n".join(side) for side in zip(unnamed, *SOME, strict=True)]):
        reading = read(*files, heading=True)
        assert (reading.heading, reading.pairs) == (unnamed, tuple(SOME))
    title = read("My list\n" + tsv(SOME), heading=True)
    assert (title.heading, title.pairs, title.skipped) == (("My list",), tuple(SOME), ())


def test_a_heading_names_the_columns_of_the_sides_in_a_table_of_any_width(read):
    rows = [
        ("id", "level", "english", "french", "by"),
        *((f"{i}", "A1", s, t, "x") for i, (s, t) in enumerate(SOME)),
    ]
    reading = read(written(rows))
    assert reading.pairs == tuple(SOME)
    assert reading.format == "CSV, 5 columns, of which 3 and 4"
    assert reading.heading == rows[0]
    french_first = read(written((row[0], row[3], row[2]) for row in rows))
    assert french_first.pairs == tuple((t, s) for s, t in SOME)
    assert french_first.heading == ("id", "french", "english")


@pytest.mark.parametrize("first", [("", "english", "french"), ("", "0", "1"), ("Nr.", "A", "B")])
@pytest.mark.parametrize("start", [0, 1])
def test_the_index_that_pandas_writes_is_no_side(read, first, start):
    rows = [(f"{i}", s, t) for i, (s, t) in enumerate(SOME, start)]
    reading = read(written([first, *rows]))
    assert (reading.heading, reading.pairs) == (first, tuple(SOME))
    assert reading.format == "CSV, 3 columns, of which 2 and 3"
    assert read(written(rows)).pairs == tuple(SOME)
    assert read(written(rows), heading=True).pairs == tuple(SOME[1:])
    assert read(written([first, *rows]), heading=False).pairs == (first[1:], *SOME)


def test_numbers_that_do_not_count_the_rows_are_a_side(read):
    rows = [(f"{7 * i}", f"number {i}", "x") for i in range(30)]
    assert read(written(rows)).pairs == tuple((a, b) for a, b, _ in rows)


def test_the_lines_above_ankis_notes_are_settings(read):
    above = "#separator:tab\n#html:false\n#tags column:3\n#columns:Front\tBack\tTags\n"
    reading = read(above + tsv((s, t, "animals") for s, t in SOME))
    assert reading.pairs == tuple(SOME)
    assert reading.skipped == (("a setting of the program that saved the table", 4),)


PLAIN = [('"Go," he said.', "« Va »"), ('"Stop!"', '"Arrête !"'), ('"Go.', "Va."), ("a", 'b"'), ("5'", '5"')]


TWO_LINES = [('"Go.', "Va."), ('Stop!"', "Arrête !")]
"""A quotation over two sentences."""


@pytest.mark.parametrize(
    "odd", [PLAIN, *([pair] for pair in PLAIN), [*PLAIN, ('"a ""b"" c"', "d")], TWO_LINES]
)
def test_quotation_marks_in_tsv_are_characters_unless_all_of_them_enclose_cells(read, odd):
    reading = read(tsv([*SOME[:9], *odd, *SOME[9:]]))
    assert reading.pairs == (*SOME[:9], *odd, *SOME[9:])
    assert reading.line_breaks == 0


@pytest.mark.parametrize(
    ("cells", "pair"),
    [
        ('"Say ""hi"""\tDis', ('Say "hi"', "Dis")),
        ('"Two\nlines"\tDeux', ("Two lines", "Deux")),
        ('a\t"""b"""', ("a", '"b"')),
    ],
)
def test_quotation_marks_in_tsv_enclose_cells_where_a_spreadsheet_has_written_them(read, cells, pair):
    for end in ("\n", "\r\n"):
        text = "".join(f"{s}\t{t}{end}" for s, t in SOME[:9]) + cells + end + f'"Yes, he does"\tOui{end}'
        reading = read(text + "".join(f"{s}\t{t}{end}" for s, t in SOME[9:]))
        assert reading.pairs == (*SOME[:9], pair, ("Yes, he does", "Oui"), *SOME[9:])


def test_quotation_marks_in_tsv_enclose_cells_where_every_cell_is_enclosed(read):
    assert read(written(SOME, delimiter="\t", quoting=csv.QUOTE_ALL)).pairs == tuple(SOME)


def test_cells_of_long_tables_whose_answers_have_many_lines_are_found_by_their_own_separator(read):
    rows = [(f"Why {i}?", f"First; {i}\nthen; {i}\nlast; {i}") for i in range(30)]
    reading = read(written(rows))
    assert reading.pairs == tuple((q, a.replace("\n", " ")) for q, a in rows)
    assert reading.format == "CSV, 2 columns"


def test_spaces_around_enclosed_cells_are_left_out_and_those_inside_are_kept(read):
    text = "".join(f'"{s}" , "{t}" \n' for s, t in SOME) + '"say ""a"" , then" ,"two\nlines" \n'
    assert read(text).pairs == (*SOME, ('say "a" , then', "two lines"))
