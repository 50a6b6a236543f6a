"""Names of columns and keys: which of them hold the sentence, and which its translation."""

from __future__ import annotations

import re
from collections.abc import Sequence

SOURCES = {"source", "src", "original", "input", "question", "prompt", "from"}
TARGETS = {"target", "tgt", "trg", "translation", "translated", "output", "answer", "reference", "to"}
NEUTRAL = {"sentence", "sentences", "text", "texts", "phrase", "language", "lang", "side", "column"}
LANGUAGES = set(
    "en eng english anglais inglese inglés englisch 英语 英文 fr fra fre french français francais francese "
    "it ita italian italiano de deu ger german deutsch allemand es spa spanish español espanol spagnolo "
    "pt por portuguese português nl nld dut dutch nederlands zh zho chi cmn chinese mandarin 中文 汉语 "
    "ja jpn japanese 日本語 ko kor korean 한국어 ru rus russian русский uk ukr ukrainian українська "
    "pl pol polish polski cs ces cze czech čeština sk slk slovak hu hun hungarian magyar ro ron romanian "
    "bg bul bulgarian el ell greek ελληνικά tr tur turkish türkçe ar ara arabic العربية he heb hebrew עברית "
    "fa fas persian hi hin hindi हिन्दी bn ben bengali ur urd urdu vi vie vietnamese ind indonesian "
    "sv swe swedish svenska da dan danish dansk nb nob no nor norwegian norsk fi fin finnish suomi "
    "et est estonian lv lav latvian lt lit lithuanian ca cat catalan eu eus basque gl glg galician "
    "la lat latin eo epo esperanto sw swa swahili yo yor yoruba ga gle irish cy cym welsh".split()
)
_PARTS = re.compile(r"[\s_\-./()\[\]\"']+|(?<!\d)\d\Z")


def kind_of(name: str) -> str:
    """Which side a name speaks of: "source", "target", "either"; empty where it is no such name."""
    parts = {part for part in _PARTS.split(name.strip().casefold()) if part}
    if not parts or len(name) > 40 or not parts <= SOURCES | TARGETS | NEUTRAL | LANGUAGES:
        return ""
    if parts & TARGETS:
        return "target"
    return "source" if parts & SOURCES else "either"


def sides_of(names: Sequence[str]) -> tuple[int, int] | None:
    """The places of the two names that tell the sides, source first; None where they do not tell."""
    kinds = {place: kind for place, name in enumerate(names) if (kind := kind_of(name))}
    sources, targets = (
        [place for place, kind in kinds.items() if kind == side] for side in ("source", "target")
    )
    if len(sources) == len(targets) == 1:
        return sources[0], targets[0]
    if len(kinds) != 2 or len({names[place].strip().casefold() for place in kinds}) < 2:
        return None
    first, second = kinds
    if len(sources) == 2 or len(targets) == 2:
        return None
    return (second, first) if kinds[first] == "target" or kinds[second] == "source" else (first, second)
