"""Whether the first line of a table names its columns, such as "english,french"."""

from __future__ import annotations

import unicodedata

_SIDES = """
source target src tgt from to input output question answer prompt response original translation translated
sentence text word words front back side_a side_b reads writes meaning
source_text target_text source_sentence target_sentence source_language target_language
quelle ziel frage antwort eingabe ausgabe übersetzung satz wort
cible réponse entrée sortie phrase mot traduction
origine destinazione domanda risposta ingresso uscita frase parola traduzione
origen destino pregunta respuesta entrada salida palabra traducción
原文 译文 翻译 问题 答案
"""
_LANGUAGES = """
english french german italian spanish portuguese dutch swedish norwegian danish finnish polish czech slovak
hungarian romanian bulgarian greek turkish russian ukrainian arabic hebrew persian hindi bengali urdu chinese
mandarin japanese korean vietnamese thai indonesian malay latin esperanto catalan croatian serbian slovenian
estonian latvian lithuanian irish welsh basque swahili
en fr de it es pt nl sv no da fi pl cs sk hu ro bg el tr ru uk ar he fa hi bn ur zh ja ko vi th id ms la eo
eng fra fre deu ger ita spa por nld dut swe nor dan fin pol ces cze hun ron rum bul ell gre tur rus ukr ara
heb hin zho chi cmn jpn kor vie tha ind
deutsch englisch französisch italienisch spanisch portugiesisch niederländisch russisch chinesisch japanisch
français anglais allemand italien espagnol portugais néerlandais russe chinois japonais
italiano inglese francese tedesco spagnolo portoghese russo cinese giapponese
español inglés francés alemán portugués ruso chino japonés português inglês francês alemão
nederlands engels frans duits svenska engelska polski angielski русский английский
中文 汉语 英文 英语 法语 德语 日本語 英語 한국어 영어
"""
NAMES = frozenset((_SIDES + _LANGUAGES).split())
"""Names of sides and of languages, in lower case."""


def is_heading(source: str, target: str) -> bool:
    """Whether two cells are different names of sides or languages."""
    names = [
        unicodedata.normalize("NFC", cell).strip(" .:()[]{}<>#*_\"'").casefold() for cell in (source, target)
    ]
    names = [name.replace(" ", "_").replace("-", "_") for name in names]
    return names[0] != names[1] and NAMES.issuperset(names)
