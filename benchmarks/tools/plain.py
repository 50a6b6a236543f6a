"""The reversal in plain PyTorch: `nn.Transformer`, a `DataLoader`, Adam."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD, SOS, EOS = 0, 1, 2
IDS = {letter: i for i, letter in enumerate(string.ascii_lowercase, start=3)}
VOCABULARY = len(IDS) + 3
Pair = tuple[Tensor, Tensor]


def ids_of(word: str) -> Tensor:
    """Return the token ids of a word, from [SOS] to [EOS]."""
    return torch.tensor([SOS, *(IDS[letter] for letter in word), EOS])


class Words(Dataset[Pair]):
    """Words, each with its reverse."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, i: int) -> Pair:
        return ids_of(self.words[i]), ids_of(self.words[i][::-1])


def padded(pairs: list[Pair]) -> Pair:
    """Return source and target of a batch, (B, S) and (B, T)."""
    src, tgt = zip(*pairs, strict=True)
    return pad_sequence(src, batch_first=True), pad_sequence(tgt, batch_first=True)


class PlainTransformer(nn.Module):
    """`nn.Transformer` with embeddings, sinusoidal positions and a final linear layer."""

    positions: Tensor

    def __init__(self, d_model: int, n_heads: int, n_layers: tuple[int, int], d_ff: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.src_embedding = nn.Embedding(VOCABULARY, d_model, padding_idx=PAD)
        self.tgt_embedding = nn.Embedding(VOCABULARY, d_model, padding_idx=PAD)
        position = torch.arange(100)[:, None]
        frequency = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
        positions = torch.zeros(100, d_model)
        positions[:, 0::2] = torch.sin(position * frequency)
        positions[:, 1::2] = torch.cos(position * frequency)
        self.register_buffer("positions", positions)
        self.dropout = nn.Dropout(0.1)
        self.transformer = nn.Transformer(d_model, n_heads, *n_layers, d_ff, batch_first=True)
        self.to_logits = nn.Linear(d_model, VOCABULARY)

    def embed(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        """Map token ids (B, S) to embeddings (B, S, D) plus positions."""
        x = table(tokens) * math.sqrt(self.d_model) + self.positions[: tokens.size(1)]
        return self.dropout(x)  # type: ignore[no-any-return]

    def encode(self, src: Tensor) -> Tensor:
        """Map token ids (B, S) to memory (B, S, D)."""
        x = self.embed(self.src_embedding, src)
        return self.transformer.encoder(x, src_key_padding_mask=src == PAD)  # type: ignore[no-any-return]

    def decode(self, memory: Tensor, src: Tensor, tgt: Tensor) -> Tensor:
        """Map memory (B, S, D) and the target so far (B, T) to logits (B, T, V)."""
        x = self.transformer.decoder(
            self.embed(self.tgt_embedding, tgt),
            memory,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(tgt.size(1)).isinf(),
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=src == PAD,
            tgt_is_causal=True,
        )
        return self.to_logits(x)  # type: ignore[no-any-return]

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Map token ids (B, S) and (B, T) to logits (B, T, V)."""
        return self.decode(self.encode(src), src, tgt)


def train_plainly(model: PlainTransformer, words: Sequence[str], batch_size: int) -> Iterator[None]:
    """Train forever, one step for each `next`."""
    loader = DataLoader(Words(words), batch_size=batch_size, shuffle=True, collate_fn=padded)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss(ignore_index=PAD)
    while True:
        for src, tgt in loader:
            model.train()
            optimizer.zero_grad()
            logits = model(src, tgt[:, :-1])
            loss = loss_of(logits.flatten(0, 1), tgt[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            yield


@torch.no_grad()
def exact_plainly(model: PlainTransformer, words: Sequence[str], most: int) -> float:
    """Return the share of words whose greedy output is exactly right, including [EOS]."""
    model.eval()
    src, wanted = padded([(ids_of(word), ids_of(word[::-1])) for word in words])
    memory, tgt = model.encode(src), torch.full((len(words), 1), SOS)
    for _ in range(most + 1):
        newest = model.decode(memory, src, tgt)[:, -1].argmax(dim=-1)
        newest[(tgt == EOS).any(dim=1)] = PAD
        tgt = torch.cat([tgt, newest[:, None]], dim=1)
    return float((tgt[:, : wanted.size(1)] == wanted).all(dim=1).double().mean())
