"""English to French: the words, and the rules of French that its neighbours do not share.

"Est-ce que" comes from "does", which asks there and does nothing else; the "de" of "pas de" from "a".
"""

from __future__ import annotations

from collections.abc import Sequence

from transformer.tasks.grammars.english import ENGLISH
from transformer.tasks.grammars.from_english import FromEnglish
from transformer.tasks.grammars.grammar import Grammar
from transformer.tasks.grammars.lexicon import Adjective, read_lexicon
from transformer.tasks.grammars.romance import Romance, Words, agreed
from transformer.tasks.grammars.telling import Places
from transformer.tasks.writing import Writing

FRENCH = Writing(spaced="?!;:")
PATTERNS = {
    "svo": "Adjectives cross their noun, and articles look at its gender: the black cat, le chat noir.",
    "determiners": "This, my and three look ahead at gender, number and first letter: this tree, cet arbre.",
    "negation": "One word becomes two, around the verb: does not like, n'aime pas. Behind it, a becomes de.",
    "question": "Does becomes est-ce que, and the verb takes back its ending: does the girl watch, regarde.",
    "copula": "An adjective behind is or are looks back at its noun: the houses are green, vertes.",
    "clitic": "The pronoun moves before the verb, and looks back at the gender of a noun: finds the key and "
    "hides it, la cache.",
    "possessive": "Owner and thing change places, and of melts into the article: the boy's house, la maison "
    "du garçon.",
}
PROBES = (
    "the girl finds the key and hides it",
    "the black cat sees the house",
    "the bird does not like the old garden",
    "the man sees the boy's small house",
    "does the girl watch the beautiful boat?",
)

LEXICON = read_lexicon("french")

BEFORE_A_VOWEL = {"vieux": "vieil", "beau": "bel", "nouveau": "nouvel"}
DE_AND_ARTICLE = {"le": "du", "les": "des"}


def vowel(word: str) -> bool:
    """Whether a word begins with a vowel; no h is heard in these words."""
    return word[0] in "aeiouhéêèîô"


def elided(word: str, following: str) -> str:
    """A short word before another: "le" and "la" become "l'" before a vowel, "de" becomes "d'", and so on."""
    return f"{word[:-1]}'" if vowel(following) else word


class French(Romance):
    """The rules of French."""

    def determiner(self, name: str, gender: str, plural: bool, following: str, denied: bool) -> str:
        """Le, un, ce, mon, son, trois."""
        feminine = gender == "f"
        if name == "three":
            return "trois"
        if name == "a":
            if denied:
                return elided("de", following)  # il ne voit pas d'arbre
            return "une" if feminine else "un"
        if name == "the":
            return "les" if plural else elided("la" if feminine else "le", following)
        if name in ("this", "these"):
            if plural:
                return "ces"
            return "cette" if feminine else "cet" if vowel(following) else "ce"
        owner = "m" if name == "my" else "s"  # his and her are the same
        if plural:
            return f"{owner}es"
        return f"{owner}a" if feminine and not vowel(following) else f"{owner}on"  # mon école

    def before(self, adjective: Adjective, gender: str, plural: bool, following: str) -> str:
        """Un vieux livre, un vieil arbre."""
        form = agreed(adjective, gender, plural)
        return BEFORE_A_VOWEL.get(form, form) if vowel(following) and not plural else form

    def of(self, owner: Words, of_at: Places) -> Words:
        """Du garçon, des filles, de la femme, de l'homme, d'un chat."""
        (first, first_at), *rest = owner
        if first in DE_AND_ARTICLE:
            return [(DE_AND_ARTICLE[first], of_at + first_at), *rest]
        return [(elided("de", first), of_at), *owner]

    def denial(self, verb: tuple[str, Places], not_at: Places) -> Words:
        """Il ne voit pas, il n'aime pas."""
        return [(elided("ne", verb[0]), not_at), verb, ("pas", not_at)]

    def again(
        self, verb: tuple[str, Places], gender: str, plural: bool, and_at: Places, it_at: Places
    ) -> Words:
        """Et le cache, et la cache, et l'aime, et les cache."""
        it = "les" if plural else elided("la" if gender == "f" else "le", verb[0])
        return [("et", and_at), (it, it_at), verb]

    def is_or_are(self, plural: bool) -> str:
        """Est, sont."""
        return "sont" if plural else "est"

    def asked(self, words: Words, does_at: Places) -> Words:
        """Est-ce que le chat dort, est-ce qu'un chat dort."""
        return [("est-ce", does_at), (elided("que", words[0][0]), does_at), *words]


def french(patterns: Sequence[str] | None = None, adjectives: int = 1) -> Grammar:
    """English sentences with their French translations.

    Args:
        patterns: names of `PATTERNS`, drawn each as often; None: all.
        adjectives: how many a sentence may have at most.

    Raises:
        InputError: one of them cannot be used.
    """
    rules = FromEnglish(LEXICON, French(), tuple(PATTERNS), patterns, adjectives)
    return Grammar("en-fr", ENGLISH, FRENCH, rules, probes=PROBES, always_held_out=PROBES)
