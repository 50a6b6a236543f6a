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


def reasons(reading):
    return {some.reason: some.count for some in reading.skipped}


FORMATS = {
    "TSV, 2 columns": tsv,
    "TSV, 3 columns (ManyThings)": lambda p: tsv((s, t, "CC-BY 2.0 Attribution: x #1") for s, t in p),
    "TSV, 3 columns (the third is left out)": lambda p: tsv((s, t, "checked") for s, t in p),
    "TSV, 3 columns (the first holds numbers)": lambda p: tsv((str(i), *st) for i, st in enumerate(p)),
    "TSV, 4 columns (Tatoeba)": lambda p: tsv((f"{i}", s, f"{9 * i}", t) for i, (s, t) in enumerate(p)),
    "TSV, 2 columns with header": lambda p: "English\tFrench\n" + tsv(p),
    "TSV, 4 columns (Tatoeba) with header": lambda p: (
        "id\ten\tid\tfr\n" + tsv((f"{i}", s, f"{9 * i}", t) for i, (s, t) in enumerate(p))
    ),
    "CSV without header": lambda p: "".join(f"{s},{t}\n" for s, t in p),
    "CSV with header": lambda p: "source,target\n" + "".join(f"{quoted(s)},{quoted(t)}\n" for s, t in p),
    "semicolon CSV without header": lambda p: "".join(f"{s};{t}\n" for s, t in p),
    "semicolon CSV with header": lambda p: "en; fr\n" + "".join(f"{s};{quoted(t)}\n" for s, t in p),
    "JSON lines": lambda p: "".join(json.dumps({"src": s, "tgt": t}) + "\n" for s, t in p),
}


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_is_told_by_its_content_and_gives_the_same_pairs(read, some, form):
    reading = read(FORMATS[form](some()))
    assert (reading.format, reading.pairs) == (form, tuple(some()))
    assert (reading.read, reading.seen, reading.skipped) == (30, 30, ())


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "saved",
    [
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        lambda text: text.encode("utf-32"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\r").encode(),
        lambda text: text.replace("\n", "\r\r\n").encode(),
        lambda text: text.removesuffix("\n").encode(),
        lambda text: unicodedata.normalize("NFD", text).encode(),
        lambda text: text.replace("été !", "été\u00a0!").encode(),
        lambda text: text.replace("été !", "\u202fété\u200b \u202f!\u00ad").encode(),
    ],
    ids="bom utf-16 utf-16-be utf-32 crlf cr crcrlf open-end nfd nbsp odd-spaces".split(),
)
def test_marks_line_ends_composition_and_odd_spaces_make_no_difference(read, some, form, saved):
    reading = read(saved(FORMATS[form](some())))
    assert (reading.format, reading.pairs, reading.skipped) == (form, tuple(some()), ())


def test_two_files_are_joined_line_by_line_the_first_is_the_source(read, some):
    sources, targets = zip(*some(), strict=True)
    reading = read("\n".join(sources), "\n".join(targets) + "\n")
    assert (reading.format, reading.pairs) == ("two aligned files", tuple(some()))


def test_an_empty_line_in_one_of_two_files_moves_no_other_line(read, some):
    sources, targets = (list(side) for side in zip(*some(), strict=True))
    sources[3] = targets[7] = targets[9] = sources[9] = ""
    reading = read("\n".join(sources), "\n".join(targets))
    assert reading.pairs == tuple(pair for i, pair in enumerate(some()) if i not in (3, 7, 9))
    assert reasons(reading) == {"an empty side": 2, "an empty line": 1}
    assert reading.skipped[0].examples == (Example(4, targets[3]), Example(8, sources[7]))


def test_quotation_marks_in_tsv_are_plain_characters_and_a_leading_one_swallows_nothing(read, some):
    odd = [('"Go, he said.', "« Va ! »"), ('Say "hi"', 'Dis "salut"'), ('""', '"'), ('"a"', '"b"')]
    assert read(tsv(some()[:15] + odd + some()[15:])).pairs == tuple(some()[:15] + odd + some()[15:])


def test_quoted_cells_of_csv_may_hold_commas_quotation_marks_and_line_ends(read, some):
    odd = [("Yes, I do.", "Oui, bien sûr."), ('Say "hi", Tom', 'Dis "salut"'), ("one\ntwo", "un\r\ndeux")]
    text = "".join(f"{quoted(s)}, {quoted(t)}\n" for s, t in [*odd, *some()])
    reading = read(text)
    assert reading.pairs == (*odd[:2], ("one two", "un deux"), *some())
    assert reading.seen == 33


def test_examples_after_a_record_of_several_lines_have_the_right_line_number(read, some):
    text = '"one\ntwo","un\ndeux"\n' + "".join(f"{s},{t}\n" for s, t in some()) + "alone\n"
    assert read(text).skipped[0].examples == (Example(34, "alone"),)


@pytest.mark.parametrize(("n_lines", "joined"), [(10, True), (11, False)])
def test_a_quoted_record_of_csv_has_ten_lines_at_most(read, some, n_lines, joined):
    record = '"' + "\n".join(["word"] * n_lines) + '",mots'
    reading = read("\n".join([*(f"{s},{t}" for s, t in some(60)), record]))
    assert ((" ".join(["word"] * n_lines), "mots") in reading.pairs) is joined
    assert reading.seen == 60 + (1 if joined else n_lines)


def test_a_quotation_mark_in_csv_that_nobody_closes_takes_no_other_line_along(read, some):
    odd = ['"Hello,Bonjour', '"Hi" he said,"Salut" dit-il']
    lines = [f"{s},{t}" for s, t in some(60)]
    reading = read("\n".join([*lines[:9], odd[0], *lines[9:30], odd[1], *lines[30:]]))
    expected = some(60)
    expected[30:30] = [('"Hi" he said', '"Salut" dit-il')]
    expected[9:9] = [('"Hello', "Bonjour")]
    assert reading.pairs == tuple(expected)


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_only_line_feeds_end_lines(read, some, sign):
    odd = (f"one{sign}two", f"un{sign}{sign}deux")
    for form in ("TSV, 2 columns", "CSV without header", "JSON lines"):
        assert read(FORMATS[form]([*some(), odd])).pairs[-1] == ("one two", "un deux"), form


def test_controls_and_halves_of_characters_are_left_out(read, some):
    assert read(tsv([*some(), ("a\x07b\x7f\x9f", "\ufeffc\x1bd")])).pairs[-1] == ("ab", "cd")
    lines = FORMATS["JSON lines"](some()) + '{"src": "a\\ud800\\u0000b", "tgt": "e\\u0301\\n\\tx"}\n'
    assert read(lines).pairs[-1] == ("ab", "é x")


@pytest.mark.parametrize(
    ("header", "place"),
    [
        ("source,target", (0, 1)),
        ("target,source", (1, 0)),
        ("fr,en", (0, 1)),
        ("English,Français", (0, 1)),
        ("sentence,translation", (0, 1)),
        ("translation,sentence", (1, 0)),
        ("translated_text,text", (1, 0)),
        ("sentence_en,sentence_fr", (0, 1)),
        ('"SRC","TGT" ', (0, 1)),
        ("text 1,text 2", (0, 1)),
    ],
)
def test_the_names_of_a_header_tell_the_sides(read, some, header, place):
    rows = [f"{s},{t}" for s, t in some()]
    reading = read("\n".join([header, *rows]))
    assert reading.format == "CSV with header"
    assert reading.pairs == tuple((pair[place[0]], pair[place[1]]) for pair in some())
    assert reading.seen == 30


def test_a_header_finds_its_columns_among_others(read, some):
    text = ",tgt,score,user,src,note\n" + "".join(f"{i},{t},0.5,me,{s},\n" for i, (s, t) in enumerate(some()))
    reading = read(text)
    assert (reading.pairs, reading.format) == (tuple(some()), "CSV with header, 6 columns")


def test_a_first_pair_that_only_speaks_of_language_is_no_header(read, some):
    for first in [("French", "French"), ("English", "l'anglais"), ("Yes.", "No.")]:
        assert read(tsv([first, *some()])).pairs[0] == first


def test_names_in_the_second_line_too_are_no_header(read):
    assert read(tsv((f"Sentence {i}", f"Text {i}") for i in range(25))).pairs[0] == ("Sentence 0", "Text 0")


@pytest.mark.parametrize(
    "written",
    [
        lambda s, t: {"source": s, "target": t},
        lambda s, t: {"target": t, "id": "x7", "source": s},
        lambda s, t: {"en": s, "fr": t},
        lambda s, t: {"id": 3, "en": s, "fr": t, "score": 0.5},
        lambda s, t: {"sentence": s, "translation": t},
        lambda s, t: {"translation": {"en": s, "fr": t}},
        lambda s, t: {"id": "7", "translation": {"en": s, "fr": t}},
        lambda s, t: {"pair": {"left": s, "right": t}},
        lambda s, t: {"left": s, "right": t, "n": 1},
    ],
)
def test_json_lines_may_name_the_sides_in_many_ways(read, some, written):
    text = "".join(json.dumps(written(s, t), ensure_ascii=False) + "\n" for s, t in some())
    assert read(text).pairs == tuple(some())
    assert read(text.replace("}\n", "},\n")).pairs == tuple(some()), "commas between the lines"


def test_the_order_of_names_inside_an_object_makes_no_difference(read, some):
    objects = [{"en": s, "fr": t} if i % 3 else {"fr": t, "en": s} for i, (s, t) in enumerate(some())]
    assert read("\n".join(map(json.dumps, objects))).pairs == tuple(some())


def test_every_defect_is_counted_with_its_first_examples(read, some):
    bad = ["", "alone", "a\tb\tc", "x\t", "\ty", " \u00a0\tz", "u" * 1001 + "\tv", " "]
    text = tsv(some()) + "\n".join(bad) + "\n" + tsv(some()[:5])
    reading = read(text)
    assert reading.pairs == tuple(some())
    assert reading.skipped == (
        Skipped("the same pair as before", 5, tuple(Example(39 + i, " ".join(some()[i])) for i in range(3))),
        Skipped("an empty side", 3, (Example(34, "x"), Example(35, "y"), Example(36, "z"))),
        Skipped("an empty line", 2, (Example(31, ""), Example(38, ""))),
        Skipped("another number of columns than 2", 2, (Example(32, "alone"), Example(33, "a b c"))),
        Skipped("a sentence longer than 1,000 characters", 1, (Example(37, "u" * 59 + "…"),)),
    )
    assert reading.seen == 43 == reading.read + sum(some.count for some in reading.skipped)


def test_what_is_no_pair_in_json_lines_is_counted(read, some):
    nested = '{"a":' * 3000 + "1" + "}" * 3000
    bad = [
        nested,
        '{"src": "a"}',
        '{"src": 1, "tgt": "b"}',
        "{broken",
        '["a", "b"]',
        "{" * 5000,
        '{"a": ' + "9" * 5000,
    ]
    reading = read("\n".join(bad) + "\n" + FORMATS["JSON lines"](some()))
    assert reading.pairs == tuple(some())
    assert reasons(reading) == {"no JSON object with “src” and “tgt”": 7}


def test_a_sentence_of_the_longest_length_is_read_and_a_longer_line_not_looked_into(read, some):
    reading = read(tsv([*some(), ("a" * 1000, "b"), ("c" * 20_000, "d")]))
    assert reading.pairs[-1] == ("a" * 1000, "b")
    assert reasons(reading) == {"a line longer than 20,000 characters": 1}


def test_many_targets_of_a_source_and_the_same_text_on_both_sides_are_no_defects(read, some):
    more = [("Go.", "Va !"), ("Go.", "Marche."), ("Tom", "Tom"), ("OK", "OK")]
    assert read(tsv(some() + more)).pairs == tuple(some() + more)


def test_a_pair_is_the_same_though_its_spaces_are_others(read, some):
    assert reasons(read(tsv([*some(), ("Look at the  3 cats!", "Regarde les 3 chats été\u202f!")]))) == {
        "the same pair as before": 1
    }


def test_a_line_between_every_two_is_no_reason_to_refuse(read, some):
    reading = read(tsv(some(), end="\n\n"))
    assert reading.pairs == tuple(some())
    assert reasons(reading) == {"an empty line": 30}
