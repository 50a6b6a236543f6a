"""From uploaded files to pairs: what was read, how, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transformer.tasks.pairs.layout import READABLE, Layout, aligned, layout_of
from transformer.tasks.pairs.rows import MAX_LINE, Row
from transformer.tasks.pairs.text import EXPECTED, lines_of, named, plain, refused, shortened

Sides = tuple[str, str]

MAX_BYTES = 20_000_000
"""Maximum size of all files together."""
MAX_SIDE = 1_000
"""Maximum number of characters of one sentence."""
MIN_PAIRS = 20
EMPTY_LINE = "an empty line"
EMPTY_SIDE = "an empty side"
OTHER_FORM = "a different format than most lines"
LONG = f"a sentence longer than {MAX_SIDE:,} characters"
AGAIN = "a repeated pair"
SETTING = "a setting of the program that saved the table"


@dataclass(frozen=True)
class Reading:
    """The pairs of the files. A second target for the same source is a pair of its own."""

    pairs: tuple[Sides, ...]
    """Sentences and their translations, in the order of the file, each pair once, normalised by `plain`."""
    format: str
    """The format of the files, as text on the page."""
    skipped: tuple[tuple[str, int], ...] = ()
    """(reason, number) of rows that gave no pair, without the heading; the most frequent reason first."""
    heading: tuple[str, ...] | None = None
    """The cells of the first row, shortened, if it is a heading and no pair."""
    line_breaks: int = 0
    """Number of line breaks in cells, which are read as spaces."""
    western: tuple[str, ...] = ()
    """Names of the files that were read as Windows-1252."""

    @property
    def read(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def n_skipped(self) -> int:
        """Number of rows that gave no pair, without the heading."""
        return sum(count for _, count in self.skipped)


def read_pairs(files: Sequence[tuple[str, bytes]], *, heading: bool | None = None) -> Reading:
    """Read one file with both sides, or two files with a side each, sources first.

    Args:
        files: name and content of each file. The name is shown in errors; the format is not inferred from it.
        heading: whether the first row is a heading; None: if it looks like one.

    Raises:
        InputError: not one or two files; or they are empty, too large, no plain text, not mostly pairs, of
            different lengths or damaged (a quotation mark is not closed); or it is unclear which columns are
            the sides, or there are too few usable pairs.
    """
    if not 1 <= len(files) <= 2:
        raise refused(f"{len(files)} files are given; upload one with both languages, or two with one each.")
    size = sum(len(data) for _, data in files)
    if size > MAX_BYTES:
        raise refused(
            f"The upload has {size / 1e6:.1f} MB; the limit is {MAX_BYTES / 1e6:.0f} MB. Upload a part of it."
        )
    name = files[0][0]
    texts = [lines_of(*file) for file in files]
    if len(files) == 1:
        layout = layout_of(name, texts[0][0], heading)
    else:
        layout = aligned((name, files[1][0]), (texts[0][0], texts[1][0]), heading)
    western = tuple(name for (name, _), (_, western) in zip(files, texts, strict=True) if western)
    return _read(name, layout, western)


def reasons(skipped: Sequence[tuple[str, int]]) -> str:
    """Why rows gave no pair, in words."""
    return "; ".join(f"{count:,} × {reason}" for reason, count in skipped)


def remarks(reading: Reading) -> list[str]:
    """Sentences on what the user should check: the heading, the encoding, line breaks, what was left out."""
    sentences = []
    if reading.heading is not None:
        sentences.append(f"First line taken as heading: {', '.join(reading.heading)}.")
    if reading.western:
        sentences.append(
            f"Not UTF-8, so read as Windows-1252: {' and '.join(map(named, reading.western))}. If letters "
            "are wrong, save the table as UTF-8."
        )
    if reading.line_breaks:
        sentences.append(f"Line breaks in cells, read as spaces: {reading.line_breaks:,}.")
    if reading.skipped:
        sentences.append(f"Lines skipped: {reasons(reading.skipped)}.")
    return sentences


def _read(name: str, layout: Layout, western: tuple[str, ...]) -> Reading:
    """The pairs that can be used, and the rest by reason."""
    pairs: dict[Sides, None] = {}
    count: Counter[str] = Counter()
    odd: Row | None = None
    n_rows = line_breaks = 0
    heading = layout.heading
    for row in layout.rows:
        if row.unclosed:
            raise refused(
                f"{named(name)} has a quotation mark that is not closed in the row that starts in line "
                f"{row.number:,}, “{shortened(row.text)}”. In CSV, a cell that begins with a quotation mark "
                "ends with one, and those inside it are doubled. Correct the line, or separate the cells by "
                "tabs."
            )
        line_breaks += row.n_lines - 1
        if heading is not None and row.number == heading.number:
            continue
        n_rows += 1
        pair = _pair(layout, row)
        if isinstance(pair, str) or pair in pairs:
            count[pair if isinstance(pair, str) else AGAIN] += 1
            if pair == OTHER_FORM:
                odd = odd or row
        else:
            pairs[pair] = None
    fitting = 1 - count[OTHER_FORM] / max(1, n_rows - count[EMPTY_LINE])
    if odd is not None and fitting < READABLE:
        raise refused(
            f"Only {fitting:.0%} of the lines of {named(name)} are {layout.format}; line {odd.number:,} is "
            f"“{shortened(odd.text)}”. {EXPECTED}."
        )
    count[SETTING] = layout.n_settings
    reading = Reading(
        tuple(pairs),
        layout.format,
        tuple((reason, n) for reason, n in count.most_common() if n),
        None if heading is None else tuple(map(shortened, heading.cells)),
        line_breaks,
        western,
    )
    if len(pairs) < MIN_PAIRS:
        remark = " ".join(remarks(reading))
        raise refused(
            f"{named(name)}, read as {layout.format}, has {len(pairs)} usable pairs; at least {MIN_PAIRS} "
            f"are needed. Add more sentences.{remark and ' '}{remark}"
        )
    return reading


def _pair(layout: Layout, row: Row) -> Sides | str:
    """The pair of a row, or why there is none."""
    if not row.text.strip():
        return EMPTY_LINE
    if len(row.text) > MAX_LINE:
        return LONG
    if len(row.cells) != layout.width:
        return OTHER_FORM
    first, second = layout.columns
    source, target = plain(row.cells[first]), plain(row.cells[second])
    if not source or not target:
        return EMPTY_SIDE
    return LONG if max(len(source), len(target)) > MAX_SIDE else (source, target)
