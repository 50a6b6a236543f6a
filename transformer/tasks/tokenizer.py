"""Characters to token ids and back, through the `tokenizers` package."""

from __future__ import annotations

import string
from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

PAD, SOS, EOS, UNK, SEP = "[PAD]", "[SOS]", "[EOS]", "[UNK]", "[SEP]"
SPECIALS = (PAD, SOS, EOS, UNK)


class CharacterTokenizer:
    """One token per character, [SOS] before and [EOS] after; [PAD] is always id 0.

    Args:
        separator: whether there is a [SEP] too, as the last token.
    """

    def __init__(self, alphabet: Sequence[str] = string.ascii_lowercase, *, separator: bool = False) -> None:
        tokens = [*SPECIALS, *alphabet, *([SEP] if separator else [])]
        vocabulary = {token: i for i, token in enumerate(tokens)}
        self._tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNK))
        self._tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
        self._tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{SOS} $A {EOS}", special_tokens=[(SOS, vocabulary[SOS]), (EOS, vocabulary[EOS])]
        )
        self.pad_id, self.sos_id, self.eos_id = (vocabulary[token] for token in (PAD, SOS, EOS))
        self.sep_id = vocabulary.get(SEP, -1)
        """Id of [SEP]; -1 where there is none."""
        self.size = len(vocabulary)
        """Number of tokens, special ones included."""
        self._tokens, self._ids = list(vocabulary), vocabulary

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, from [SOS] to [EOS]."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def tokens(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The token of each id."""
        return tuple(self._tokens[i] for i in ids)

    def id_of(self, token: str) -> int:
        """The id of a token; [UNK]'s where there is no such token."""
        return self._ids.get(token, self._ids[UNK])

    def text(self, ids: Sequence[int]) -> tuple[str, bool]:
        """What stands before the first [EOS], and whether there is one. Other special tokens are shown."""
        tokens = self.tokens(ids)
        ended = EOS in tokens
        return "".join(tokens[: tokens.index(EOS)] if ended else tokens), ended

    def to_json(self) -> str:
        """The tokenizer as a `tokenizer.json`, readable by the `tokenizers` package."""
        return self._tokenizer.to_str(pretty=True)
