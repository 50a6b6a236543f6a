"""Tokenizers of characters, words, byte pairs, or of a user's file, built on the `tokenizers` package."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from os.path import commonprefix

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors, trainers

from transformer.errors import InputError
from transformer.tasks.writing import CHARACTERS, Writing

PAD, SOS, EOS, UNK, SEP = "[PAD]", "[SOS]", "[EOS]", "[UNK]", "[SEP]"
SPECIALS = (PAD, SOS, EOS, UNK)
BPE_SIZE = 300
"""Default size of a vocabulary of byte pairs."""
_SPACE = "▁"
"""The space before a word in tokens of byte pairs."""
Pieces = Callable[[Sequence[str]], tuple[str, ...]]
Split = Callable[[str], Iterable[str]]


class TextTokenizer:
    """A tokenizer that puts [SOS] before a text, [EOS] after it. [PAD] has id 0; [UNK] is any unknown token.

    Args:
        backend: turns text into its own ids.
        tokens: the names of the tokens with ids from 4 on, in order.
        pieces: returns the text of each token of a sequence; joined, they are the whole text.
        ids: the backend's id of each of `tokens`; by default 4, 5 and so on.
        separator: whether there is a [SEP] too, as the last token.
        split: splits a text in place of the backend, where that is faster.
    """

    def __init__(
        self,
        backend: Tokenizer,
        tokens: Sequence[str],
        pieces: Pieces,
        *,
        ids: Sequence[int] | None = None,
        separator: bool,
        split: Split | None = None,
    ) -> None:
        self._backend, self._pieces, self._split = backend, pieces, split
        self._tokens = [*SPECIALS, *tokens, *([SEP] if separator else [])]
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        from_4_on = range(len(SPECIALS), len(SPECIALS) + len(tokens))
        self._from_backend = dict(zip(from_4_on if ids is None else ids, from_4_on, strict=True))
        self.pad_id, self.sos_id, self.eos_id, self.unk_id = range(len(SPECIALS))
        self.sep_id = self._ids[SEP] if separator else -1
        """Id of [SEP]; -1 where there is none."""
        self.size = len(self._tokens)
        """Number of tokens, special ones included."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, from [SOS] to [EOS]."""
        if self._split is not None:
            id_of, unknown = self._ids.get, self.unk_id
            return [[self.sos_id, *(id_of(t, unknown) for t in self._split(s)), self.eos_id] for s in texts]
        encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        ours = self._from_backend.get
        return [[self.sos_id, *(ours(i, self.unk_id) for i in e.ids), self.eos_id] for e in encodings]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) offsets, in characters, of each of the backend's tokens in a text."""
        return list(self._backend.encode(text, add_special_tokens=False).offsets)

    def tokens(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The token of each id as it is shown, with ␣ for a space."""
        return tuple(self._tokens[i].replace(_SPACE, " ").replace(" ", "␣") for i in ids)

    def id_of(self, token: str) -> int:
        """The id of a token as it is shown; [UNK]'s where there is no such token."""
        plain = token.replace("␣", " ")
        return self._ids.get(plain, self._ids.get(plain.replace(" ", _SPACE), self.unk_id))

    def pieces(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text of each id in a row; the space between two words belongs to the later one."""
        return self._pieces([self._tokens[i] for i in ids])

    def text(self, ids: Sequence[int]) -> tuple[str, bool]:
        """The text up to the first [EOS], and whether there is one. Other special tokens stay."""
        rows = list(ids)
        ended = self.eos_id in rows
        return "".join(self.pieces(rows[: rows.index(self.eos_id)] if ended else rows)), ended

    def to_json(self) -> str:
        """The backend as a `tokenizer.json` of the `tokenizers` package; a user's file keeps its own ids."""
        return self._backend.to_str(pretty=True)


def characters(alphabet: Sequence[str] = string.ascii_lowercase, *, separator: bool = False) -> TextTokenizer:
    """One token per character."""
    # Split in Python: the backend takes longer to hand a batch to its threads than to split it.
    return _word_level(alphabet, CHARACTERS, tuple, separator, lambda text: text.replace("\n", ""))


def words(vocabulary: Sequence[str], writing: Writing, *, separator: bool = False) -> TextTokenizer:
    """One token per unit of a writing."""

    def pieces(tokens: Sequence[str]) -> tuple[str, ...]:
        """Each word with the space before it, if there is one."""
        later = (writing.join(pair)[len(pair[0]) :] for pair in pairwise(tokens))
        return (*tokens[:1], *later)

    return _word_level(vocabulary, writing.unit, pieces, separator)


def _word_level(
    vocabulary: Sequence[str], unit: str, pieces: Pieces, separator: bool, split: Split | None = None
) -> TextTokenizer:
    tokens = [*SPECIALS, *vocabulary, *([SEP] if separator else [])]
    backend = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token=UNK))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(unit), "removed", invert=True)
    _add_ends(backend)
    return TextTokenizer(backend, vocabulary, pieces, separator=separator, split=split)


def byte_pairs(texts: Sequence[str], size: int | None = None, *, separator: bool = False) -> TextTokenizer:
    """Byte-pair encoding, learned from these texts (Sennrich et al., 2016; here of characters).

    Args:
        size: maximum number of tokens, special ones included, or more if the texts have more different
            characters; None: `BPE_SIZE`.
    """
    learner = Tokenizer(models.BPE(unk_token=UNK))
    learner.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE)
    least = len(SPECIALS) + len({sign for text in texts for sign in text}) + 1 + separator
    trainer = trainers.BpeTrainer(
        vocab_size=max(size or BPE_SIZE, least) - separator,
        special_tokens=list(SPECIALS),
        show_progress=False,
    )
    learner.train_from_iterator(texts, trainer)
    learned = json.loads(learner.to_str())["model"]
    tokens = sorted(learned["vocab"], key=learned["vocab"].__getitem__)
    # Built anew without added tokens: the learner would read "[PAD]" in a text as the special token.
    if separator:
        learned["vocab"][SEP] = len(tokens)
    merges = [tuple(merge) for merge in learned["merges"]]
    backend = Tokenizer(models.BPE(learned["vocab"], merges, unk_token=UNK))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE)
    _add_ends(backend)

    def pieces(parts: Sequence[str]) -> tuple[str, ...]:
        spaced = [part.replace(_SPACE, " ") for part in parts]
        return tuple(part.removeprefix(" ") if i == 0 else part for i, part in enumerate(spaced))

    return TextTokenizer(backend, tokens[len(SPECIALS) :], pieces, separator=separator)


def from_file(
    content: str, texts: Sequence[str], most: int | None = None, *, separator: bool = False
) -> TextTokenizer:
    """The tokenizer of a user's `tokenizer.json`, restricted to the tokens that these texts use.

    Args:
        most: largest number of tokens, special ones included; the most frequent stay. None: all used ones.

    Raises:
        InputError: the content is not a valid tokenizer.json, or has no token for any of the texts.
    """
    backend = backend_of(content)
    counts: dict[int, int] = {}
    for encoding in backend.encode_batch_fast(list(texts), add_special_tokens=False):
        for i in encoding.ids:
            counts[i] = counts.get(i, 0) + 1
    unknown = {backend.token_to_id(token) for token in (UNK, "<unk>")}
    # The sort is stable: equally frequent tokens stay in the order in which they were read.
    used = [i for i in sorted(counts, key=lambda i: -counts[i]) if i not in unknown]
    if not used:
        raise InputError(
            "This tokenizer has no token for the task's texts; choose another file.", "tokenizer"
        )
    if most is not None:
        used = used[: most - len(SPECIALS) - separator]
    names = [backend.id_to_token(i) or "" for i in used]
    own = [f"{name}′" if name in (*SPECIALS, SEP) else name for name in names]  # not our special tokens
    their_id = dict(zip(own, used, strict=True))

    def pieces(parts: Sequence[str]) -> tuple[str, ...]:
        """The text that each token adds; our special tokens, which the file does not know, are unchanged."""
        ids = [their_id[part] for part in parts if part in their_id]
        whole = backend.decode(ids, skip_special_tokens=False)
        tokens: list[str] = []
        at = n = 0
        for part in parts:
            if part not in their_id:
                tokens.append(part)
                continue
            n += 1
            # A letter may take several tokens, and spaces depend on later ones: only what agrees is final.
            sure = commonprefix([backend.decode(ids[:n], skip_special_tokens=False), whole])
            end = max(at, len(sure))
            tokens.append(whole[at:end])
            at = end
        return tuple(tokens)

    return TextTokenizer(backend, own, pieces, ids=used, separator=separator)


def backend_of(content: str) -> Tokenizer:
    """The backend in a `tokenizer.json`.

    Raises:
        InputError: the content is not a valid tokenizer.json.
    """
    try:
        backend = Tokenizer.from_str(content)
    except Exception as error:  # the package raises a plain Exception
        raise InputError(
            f"This is not a tokenizer.json of the tokenizers package ({str(error)[:120]}); save one with "
            "tokenizer.save(), or choose another kind.",
            "tokenizer",
        ) from error
    backend.no_padding()
    backend.no_truncation()
    return backend


def from_hub(name: str) -> str:
    """The `tokenizer.json` of a pretrained tokenizer, by its name on the Hugging Face Hub.

    Raises:
        InputError: it cannot be downloaded, as without a network or where no tokenizer has this name.
    """
    try:
        backend = Tokenizer.from_pretrained(name)
    except Exception as error:  # of any class: not found, no network, damaged
        raise InputError(
            f"The tokenizer “{name}” cannot be downloaded ({str(error)[:120] or type(error).__name__}). "
            "Check the network and the name, such as bert-base-uncased, or upload its tokenizer.json.",
            "tokenizer",
        ) from error
    return str(backend.to_str())


def _add_ends(backend: Tokenizer) -> None:
    """Make the exported file add [SOS] and [EOS] in other programs; `encode` adds them itself."""
    backend.post_processor = processors.TemplateProcessing(
        single=f"{SOS} $A {EOS}", special_tokens=[(SOS, SPECIALS.index(SOS)), (EOS, SPECIALS.index(EOS))]
    )
