"""English to Italian: the words, and the rules of Italian that its neighbours do not share.

No word comes from the "does" of a question: Italian asks with its voice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from transformer.tasks.grammars.english import ENGLISH
from transformer.tasks.grammars.from_english import FromEnglish
from transformer.tasks.grammars.grammar import Grammar
from transformer.tasks.grammars.lexicon import Adjective, read_lexicon
from transformer.tasks.grammars.romance import Romance, Words, agreed
from transformer.tasks.grammars.telling import Places
from transformer.tasks.writing import Writing

ITALIAN = Writing()
PATTERNS = {
    "svo": "Adjectives cross their noun, and articles look at its gender: the black cat, il gatto nero.",
    "determiners": "Each looks ahead at gender and number, and my becomes two words: my house, la mia casa.",
    "negation": "One word for does not: the dog does not find, il cane non trova.",
    "question": "Nothing looks at does, and the verb takes back its ending: does the cat see, il gatto vede.",
    "copula": "An adjective behind is or are looks back at its noun: the houses are white, bianche.",
    "clitic": "The pronoun moves before the verb, and looks back at the gender of a noun: finds the books "
    "and hides them, li nasconde.",
    "possessive": "Owner and thing change places, and of melts into the article: the boy's car, la macchina "
    "del ragazzo.",
    "pronoun": "The pronoun is dropped, and the ending of the verb looks at it: they see the cat, vedono il "
    "gatto.",
}
PROBES = (
    "the girl finds the books and hides them",
    "the black cat sees the city",
    "the boy buys the beautiful mirror",
    "the man sees the boy's old car",
    "they see the small island",
)

LEXICON = read_lexicon("italian")

DI_AND_ARTICLE = {
    "il": "del", "lo": "dello", "l'": "dell'", "la": "della", "i": "dei", "gli": "degli", "le": "delle",
}  # fmt: skip
BELLO = {"il": "bel", "lo": "bello", "l'": "bell'", "la": "bella", "i": "bei", "gli": "begli", "le": "belle"}
"""Before its noun, "bello" has an ending for every article that the noun would have."""
MINE = {"my": ("mio", "mia", "miei", "mie"), "his": ("suo", "sua", "suoi", "sue")}


def vowel(word: str) -> bool:
    """Whether a word begins with a vowel."""
    return word[0] in "aeiou"


def heavy(word: str) -> bool:
    """Whether a word begins with a sound that needs "lo": s with a consonant, z, gn or ps."""
    return bool(re.match("s[^aeiou]|z|gn|ps", word))


def article(gender: str, plural: bool, following: str) -> str:
    """The."""
    if gender == "f":
        return "le" if plural else "l'" if vowel(following) else "la"
    if plural:
        return "gli" if vowel(following) or heavy(following) else "i"
    return "l'" if vowel(following) else "lo" if heavy(following) else "il"


def indefinite(gender: str, following: str) -> str:
    """A."""
    if gender == "f":
        return "un'" if vowel(following) else "una"
    return "uno" if heavy(following) else "un"


class Italian(Romance):
    """The rules of Italian."""

    def determiner(self, name: str, gender: str, plural: bool, following: str, denied: bool) -> str:
        """Il, un, questo, il mio, il suo, tre."""
        ending = 2 * plural + (gender == "f")
        if name == "three":
            return "tre"
        if name == "a":
            return indefinite(gender, following)
        if name == "the":
            return article(gender, plural, following)
        if name in ("this", "these"):
            elides = vowel(following) and not plural
            return "quest'" if elides else ("questo", "questa", "questi", "queste")[ending]
        mine = MINE["my" if name == "my" else "his"][ending]  # his and her are the same
        return f"{article(gender, plural, mine)} {mine}"

    def before(self, adjective: Adjective, gender: str, plural: bool, following: str) -> str:
        """Un bel libro, un bello specchio, un bell'albero; other adjectives do not look at what follows."""
        return (
            BELLO[article(gender, plural, following)]
            if adjective.en == "beautiful"
            else agreed(adjective, gender, plural)
        )

    def of(self, owner: Words, of_at: Places) -> Words:
        """Del ragazzo, dello studente, dell'uomo, di un gatto."""
        (first, first_at), *rest = owner
        if first in DI_AND_ARTICLE:
            return [(DI_AND_ARTICLE[first], of_at + first_at), *rest]
        return [("di", of_at), *owner]

    def denial(self, verb: tuple[str, Places], not_at: Places) -> Words:
        """Non vede."""
        return [("non", not_at), verb]

    def again(
        self, verb: tuple[str, Places], gender: str, plural: bool, and_at: Places, it_at: Places
    ) -> Words:
        """E lo nasconde, e la nasconde, e li nasconde, e le nasconde."""
        it = ("le" if plural else "la") if gender == "f" else "li" if plural else "lo"
        return [("e", and_at), (it, it_at), verb]

    def is_or_are(self, plural: bool) -> str:
        """È, sono."""
        return "sono" if plural else "è"

    def asked(self, words: Words, does_at: Places) -> Words:
        """Il gatto dorme: as it stands."""
        return words


def italian(patterns: Sequence[str] | None = None, adjectives: int = 1) -> Grammar:
    """English sentences with their Italian translations.

    Args:
        patterns: names of `PATTERNS`, drawn each as often; None: all.
        adjectives: how many a sentence may have at most.

    Raises:
        InputError: one of them cannot be used.
    """
    rules = FromEnglish(LEXICON, Italian(), tuple(PATTERNS), patterns, adjectives)
    return Grammar("en-it", ENGLISH, ITALIAN, rules, probes=PROBES, always_held_out=PROBES)
