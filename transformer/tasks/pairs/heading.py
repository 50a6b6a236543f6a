"""Whether the first row of a table is its heading, judged by known names of languages and sides."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transformer.tasks.pairs.text import plain

LANGUAGES = """
en eng: English anglais Englisch inglese inglés inglês Engels английский 英语 英文 英語 영어
fr fra fre: French français francais Französisch francese francés francês Frans французский 法语 フランス語
de deu ger: German allemand Deutsch tedesco alemán alemão Duits немецкий 德语 德文 ドイツ語
it ita: Italian italien Italienisch italiano Italiaans итальянский 意大利语 イタリア語
es spa: Spanish espagnol Spanisch spagnolo español espanhol Spaans испанский 西班牙语 スペイン語
pt por: Portuguese portugais Portugiesisch portoghese portugués português Portugees португальский 葡萄牙语
nl nld dut: Dutch néerlandais Niederländisch olandese neerlandés holandês Nederlands нидерландский 荷兰语
ru rus: Russian russe Russisch russo ruso русский 俄语 俄文 ロシア語
uk ukr: Ukrainian ukrainien Ukrainisch ucraino ucraniano українська украинский 乌克兰语
pl pol: Polish polonais Polnisch polacco polaco polski польский 波兰语
cs ces cze: Czech tchèque Tschechisch ceco checo tcheco čeština česky чешский 捷克语
sk slk slo: Slovak slovaque Slowakisch slovacco eslovaco slovenčina slovensky
sl slv: Slovenian Slovene slovène Slowenisch sloveno esloveno slovenščina
hr hrv: Croatian croate Kroatisch croato croata hrvatski
sr srp: Serbian serbe Serbisch serbo serbio srpski српски
bg bul: Bulgarian bulgare Bulgarisch bulgaro búlgaro български
ro ron rum: Romanian roumain Rumänisch rumeno rumano romeno română
hu hun: Hungarian hongrois Ungarisch ungherese húngaro magyar
el ell gre: Greek grec Griechisch greco griego grego ελληνικά 希腊语
tr tur: Turkish turc Türkisch turco Türkçe турецкий 土耳其语
sv swe: Swedish suédois Schwedisch svedese sueco svenska 瑞典语
da dan: Danish danois Dänisch danese danés dinamarquês dansk
nb nn nob nno nor: Norwegian norvégien Norwegisch norvegese noruego norueguês norsk bokmål nynorsk
fi fin: Finnish finnois Finnisch finlandese finés finlandês suomi
isl: Icelandic islandais Isländisch islandese islandés íslenska
et: Estonian estonien Estnisch estone estonio eesti
lt lit: Lithuanian lituanien Litauisch lituano lietuvių
lv lav: Latvian letton Lettisch lettone letón latviešu
ga gle: Irish irlandais Irisch irlandese irlandés Gaeilge
cy cym: Welsh gallois Walisisch gallese galés Cymraeg
ca: Catalan Katalanisch catalano catalán català
eu eus: Basque Baskisch basco vasco euskara
eo epo: Esperanto espéranto
la: Latin Latein latino latín latina
ar ara: Arabic arabe Arabisch arabo árabe العربية 阿拉伯语 アラビア語
he heb: Hebrew hébreu Hebräisch ebraico hebreo hebraico עברית
fa fas: Persian Farsi persan Persisch persiano persa فارسی
hi hin: Hindi हिन्दी हिंदी 印地语
bn ben: Bengali bengalí Bangla বাংলা
ta tam: Tamil தமிழ்
ur urd: Urdu ourdou اردو
zh zho chi cmn: Chinese Mandarin chinois Chinesisch cinese chino chinês китайский 中文 汉语 漢語 中国語 중국어
ja jpn: Japanese japonais Japanisch giapponese japonés japonês японский 日本語 日语 日文 일본어
ko kor: Korean coréen Koreanisch coreano корейский 한국어 韩语 韓国語
vi vie: Vietnamese vietnamien Vietnamesisch vietnamita 越南语
th tha: Thai thaï Thailändisch thailandese tailandés ไทย 泰语
ind: Indonesian indonésien Indonesisch indonesiano indonesio
ms msa: Malay malais Malaiisch malese malayo Melayu
sw swa: Swahili Kiswahili suajili
"""
"""Codes of each language, and its names in several languages. Some codes are missing: "id", which heads
numbers, and some that are words, such as "is", "no" and "est"."""
SIDES = """
source src input question query prompt instruction front from term word original text sentence phrase problem
origine entrée recto mot Quelle Frage Eingabe Vorderseite von Wort Satz fuente origen pregunta entrada palabra
frase anverso sorgente domanda parola fronte fonte pergunta palavra вопрос слово 原文 问题 質問 単語
: target tgt trg output answer response reply completion back to definition translation translated meaning
label result plural cible sortie réponse traduction verso sens Ziel Antwort Ausgabe Rückseite nach Übersetzung
Bedeutung destino respuesta salida traducción reverso significado destinazione risposta traduzione retro
significato resposta tradução ответ перевод 译文 翻译 答案 回答 翻訳 意味
"""
"""Names of the first side, and of the second."""
_BESIDE = {"text", "sentence", "sentences", "phrase", "word", "words", "translation", "column"}
"""Words that may stand beside a name, as in "English text" and "translation.en"."""
_NUMBERED = re.compile(r"(?:sentence|text|column|colonne|colonna|columna|spalte|language|lang|side) ?([12])")
_BETWEEN = re.compile(r"[\s_\-/.:()\[\]]+")
MOST_LETTERS = 40
"""Maximum length of a name in a heading, in characters."""
CODE, NAME = "code", "name"


def _known() -> dict[str, tuple[str, str]]:
    """Kind and meaning of every known name. Names with one meaning name the same language or side."""
    meanings: dict[str, tuple[str, str]] = {}
    for line in LANGUAGES.strip().splitlines():
        codes, _, names = line.partition(":")
        meaning = codes.split()[0]
        meanings |= dict.fromkeys(codes.split(), (CODE, meaning))
        meanings |= dict.fromkeys(names.casefold().split(), (NAME, meaning))
    for meaning, names in zip(("source", "target"), SIDES.split(":"), strict=True):
        meanings |= dict.fromkeys(names.casefold().split(), (NAME, meaning))
    return meanings


_KNOWN = _known()


def named_columns(cells: Sequence[str]) -> tuple[int, int] | None:
    """The columns of both sides in a row that names them; None if the row is no heading.

    The names must mean different things: "English" beside "français" is a heading, "English" beside "anglais"
    is a pair of a word list. Codes go with codes only: "from" beside "de" is a pair.
    """
    meanings = {place: name for place, cell in enumerate(cells) if (name := _meaning(cell))}
    for first, (kind, meaning) in meanings.items():
        for second, (other_kind, other) in meanings.items():
            if second > first and kind == other_kind and meaning != other:
                return first, second
    return None


def _meaning(cell: str) -> tuple[str, str] | None:
    """Kind and meaning of a name in a heading; None if it is not known."""
    name = plain(cell[: 2 * MOST_LETTERS]).casefold()
    if not name or len(name) > MOST_LETTERS or name[-1] in ".!?…。":
        return None
    words = [word for word in _BETWEEN.split(name) if word]
    if numbered := _NUMBERED.fullmatch(" ".join(words)):
        return NAME, "source" if numbered[1] == "1" else "target"
    words = [word for word in words if word not in _BESIDE] or words
    meaning = _KNOWN.get(words[0]) if words else None
    is_region = len(words) == 2 and meaning is not None and meaning[0] == CODE and len(words[1]) in (2, 4)
    return meaning if len(words) == 1 or is_region else None
