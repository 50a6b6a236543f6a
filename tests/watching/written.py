"""Models whose attention is written as people write it; each keeps the weights that it has in `kept`."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils.checkpoint import checkpoint

IDS = torch.arange(22).remainder(13).reshape(2, 11)
B, T, WIDTH, HEADS = 2, 11, 24, 3


class Stack(nn.Module):
    """Embedding, then blocks on a residual stream."""

    def __init__(self, *blocks, width=WIDTH):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(20, width), nn.ModuleList(blocks)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = x + block(x)
        return x


class Projected(nn.Module):
    """Queries, keys and values of `heads` heads, (B, H, T, E)."""

    def __init__(self, width=WIDTH, heads=HEADS, keys=None):
        super().__init__()
        self.heads, self.keys = heads, keys or heads
        self.query = nn.Linear(width, width)
        self.both = nn.Linear(width, 2 * width // heads * self.keys)

    def split(self, x):
        q = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.both(x).unflatten(-1, (2, self.keys, -1)).permute(2, 0, 3, 1, 4)
        return q, k, v

    def forward(self, x):
        return self.attend(*self.split(x)).transpose(1, 2).flatten(2)


class Fused(Projected):
    def __init__(self, **how):
        super().__init__(**{name: how.pop(name) for name in ("heads", "keys") if name in how})
        self.how = {"is_causal": True} | how

    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=self.keys != self.heads, **self.how)

    def truth(self, x):
        """The weights, by arithmetic of one head after the other."""
        q, k, _ = self.split(x)
        scale = self.how.get("scale") or q.shape[-1] ** -0.5
        rows = [
            torch.stack([q[i, h] @ k[i, h * self.keys // self.heads].mT * scale for h in range(self.heads)])
            for i in range(len(q))
        ]
        scores, mask = torch.stack(rows), self.how.get("attn_mask")
        if mask is not None:
            scores = scores + mask if mask.is_floating_point() else scores.where(mask, -torch.inf)
        if self.how["is_causal"]:
            scores = scores.where(torch.ones(T, T).tril().bool(), -torch.inf)
        return scores.softmax(-1)


class Written(Projected):
    """Softmax, dropout, product; with a mask of a number that people take for minus infinity."""

    def __init__(self, low=None, softmax=F.softmax, **how):
        super().__init__(**how)
        self.low, self.softmax, self.drop = low, softmax, nn.Dropout(0.3)

    def attend(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.low is not None:
            scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), self.low)
        self.kept = self.drop(self.softmax(scores, dim=-1))
        return self.kept @ v


class Sink(Projected):
    """A further column that takes weight and is cut off before the product."""

    def attend(self, q, k, v):
        scores = q @ k.mT
        self.kept = torch.cat([scores, torch.zeros_like(scores[..., :1])], -1).softmax(-1)[..., :-1]
        return self.kept @ v


class Folded(Projected):
    """Heads folded into the batch: the examples first, or the heads first."""

    def __init__(self, heads_first=False):
        super().__init__()
        self.heads_first = heads_first

    def attend(self, q, k, v):
        turn = (lambda x: x.transpose(0, 1)) if self.heads_first else (lambda x: x)
        q, k, v = (turn(one).flatten(0, 1) for one in (q, k, v))
        folded = torch.bmm(q, k.mT).softmax(2)
        result = torch.bmm(folded, v)
        sizes = (HEADS, B) if self.heads_first else (B, HEADS)
        self.kept = turn(folded.unflatten(0, sizes))
        return turn(result.unflatten(0, sizes))


class Joined(Projected):
    """Heads computed in a loop, each masked, and put together before the product."""

    def __init__(self, how, **sizes):
        super().__init__(**sizes)
        self.how = how

    def attend(self, q, k, v):
        later = torch.ones(T, T).triu(1).bool()
        each = [(q[:, i] @ k[:, i].mT).masked_fill(later, -torch.inf).softmax(-1) for i in range(self.heads)]
        if self.how == "stack":
            self.kept = torch.stack(each, dim=1)
        else:
            self.kept = torch.cat([one[:, None] for one in each], dim=1)
        return self.kept @ v


class Talking(Projected):
    """Heads mixed after the softmax (Shazeer et al. 2020), by a linear layer or by a convolution."""

    def __init__(self, how):
        super().__init__()
        self.mix = nn.Linear(HEADS, HEADS) if how == "linear" else nn.Conv2d(HEADS, HEADS, 1)

    def attend(self, q, k, v):
        weights = (q @ k.mT).softmax(-1)
        if isinstance(self.mix, nn.Linear):
            return self.mix(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) @ v
        return self.mix(weights) @ v


class HeadsLast(Projected):
    """(B, Q, K, H), multiplied by `einsum`."""

    def attend(self, q, k, v):
        weights = torch.einsum("bhqd,bhkd->bqkh", q, k).softmax(dim=2)
        self.kept = weights.permute(0, 3, 1, 2)
        return torch.einsum("bqkh,bhkd->bhqd", weights, v)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        self.kept = torch.softmax(torch.einsum("bqd,bkd->bqk", q, k), -1)
        return torch.einsum("bqk,bkd->bqd", self.kept, v)


class Heads(nn.Module):
    """One module for each head."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(Head() for _ in range(HEADS))

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], -1)

    @property
    def kept(self):
        return torch.stack([head.kept for head in self.heads], 1)


class Layers(nn.Module):
    """Layers of one head each, one after the other."""

    def __init__(self):
        super().__init__()
        self.embed, self.widen = nn.Embedding(20, WIDTH), nn.Linear(8, WIDTH)
        self.layers = nn.ModuleList(Head() for _ in range(HEADS))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + self.widen(layer(x))
        return x


class Additive(nn.Module):
    """A recurrent decoder with additive attention: one row of weights for each output."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell = nn.Embedding(20, WIDTH), nn.GRUCell(WIDTH, WIDTH)
        self.of_state, self.of_key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, ids):
        keys, rows = self.embed(ids), []
        state = keys.mean(1)
        for _ in range(5):
            scores = self.score(torch.tanh(self.of_state(state)[:, None] + self.of_key(keys))).mT
            rows.append(scores.softmax(-1))
            state = self.cell((rows[-1] @ keys)[:, 0], state)
        self.kept = torch.stack(rows, 2)
        return state


class Windows(Projected):
    """Attention within windows of 4 of 12 positions; windows are folded into the batch."""

    def forward(self, x):
        windows = F.pad(x, (0, 0, 0, 1)).unflatten(1, (3, 4)).flatten(0, 1)
        q, k, v = self.split(windows)
        self.kept = (q @ k.mT).softmax(-1)
        return (self.kept @ v).transpose(1, 2).flatten(2).unflatten(0, (B, 3)).flatten(1, 2)[:, :T]


class Banded(Projected):
    """Each position sees five neighbours, which are columns of their own."""

    def attend(self, q, k, v):
        near = lambda x: F.pad(x, (0, 0, 2, 2)).unfold(2, 5, 1)  # noqa: E731  (B, H, T, E, 5)
        weights = (q.unsqueeze(-2) @ near(k)).softmax(-1)
        self.kept = weights.squeeze(-2)
        return (weights @ near(v).mT).squeeze(-2)


class Flexible(nn.Module):
    """`flex_attention`: a causal mask, and scores that fall with the distance."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(64, 192)

    def split(self, x):
        return self.qkv(x).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4)

    def forward(self, x):
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, T, T, device="cpu")
        near = lambda score, b, h, i, j: score - 0.3 * (i - j)  # noqa: E731
        return flex_attention(*self.split(x), score_mod=near, block_mask=mask).transpose(1, 2).flatten(2)

    def truth(self, x):
        q, k, _ = self.split(x)
        distance = torch.arange(T)[:, None] - torch.arange(T)
        scores = q @ k.mT / 4 - 0.3 * distance
        return scores.where(distance >= 0, -torch.inf).softmax(-1)


class Router(nn.Module):
    """A mixture of experts whose gates are multiplied with what the experts say."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = (
            nn.Linear(WIDTH, 4),
            nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4)),
        )

    def forward(self, x):
        said = torch.stack([expert(x) for expert in self.experts], -2)
        return (self.gate(x).softmax(-1).unsqueeze(-2) @ said).squeeze(-2)


class Codebook(nn.Module):
    """A softmax that chooses rows of a parameter."""

    def __init__(self):
        super().__init__()
        self.choose, self.codes = nn.Linear(WIDTH, 7), nn.Parameter(torch.randn(7, WIDTH))

    def forward(self, x):
        return self.choose(x).softmax(-1) @ self.codes


class Gate(nn.Module):
    """A softmax over features, before a layer."""

    def __init__(self):
        super().__init__()
        self.gate, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.out(x * self.gate(x).softmax(-1))


class Checkpointed(Stack):
    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return x


class Direct(Stack):
    """Calls the methods of its modules, and not the modules."""

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = x + block.forward(x)
        return x


class OwnForward(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


class LeftPadded(nn.Module):
    """A causal mask and padding on the left: some rows have no allowed key, and the output has no NaN."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 30, batch_first=True)
        self.embed = nn.Embedding(20, WIDTH)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids, padding):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.encoder(self.embed(ids), mask=mask, src_key_padding_mask=padding)


class Growing(nn.Module):
    """Each position attends to itself and those before it, one after the other; with a sink or without."""

    def __init__(self, sink):
        super().__init__()
        self.embed, self.sink = nn.Embedding(20, WIDTH), sink

    def forward(self, ids):
        x, self.kept, rows = 0.2 * self.embed(ids), [], []
        for t in range(4):
            scores = x[:, t : t + 1] @ x[:, : t + 1].mT
            if self.sink:
                scores = torch.cat([scores, torch.zeros_like(scores[..., :1])], -1)
            weights = scores.softmax(-1)[..., : t + 1]
            self.kept.append(weights)
            rows.append(weights @ x[:, : t + 1])
        return torch.cat(rows, 1)


class Pooled(nn.Module):
    """Attention pooling: weights times values, added up; or a product with a vector."""

    def __init__(self, how="mul"):
        super().__init__()
        self.embed, self.score, self.how = nn.Embedding(20, WIDTH), nn.Linear(WIDTH, 1), how

    def forward(self, ids):
        x = self.embed(ids)
        if self.how == "mv":
            self.kept = (x @ x[-1]).softmax(0)[None]
            return self.kept[0] @ x
        weights = torch.tanh(self.score(x)).softmax(1)
        self.kept = weights[..., 0]
        return (weights * x).sum(1)


class TwoPools(nn.Module):
    """One module that pools a sentence, and then a part of it."""

    def __init__(self):
        super().__init__()
        self.embed, self.pool = nn.Embedding(20, WIDTH), Pool()

    def forward(self, ids):
        x = self.embed(ids)
        return self.pool(x) + self.pool(x[:, :6])


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, x):
        return torch.tanh(self.score(x)).mT.softmax(-1) @ x


class Halves(Projected):
    """Local and global keys are multiplied apart."""

    def attend(self, q, k, v):
        self.kept = weights = (q @ k.mT).softmax(-1)
        return weights[..., :4] @ v[:, :, :4] + weights[..., 4:] @ v[:, :, 4:]


class HeadsFirst(nn.Module):
    """(H, B, T, E), as people write who permute the heads to the front."""

    def __init__(self, fused):
        super().__init__()
        self.fused, self.kept = fused, torch.empty(0)

    def forward(self, x):
        q = x.unflatten(-1, (4, 2)).permute(2, 0, 1, 3)
        weights = (q @ q.mT / 2**0.5).softmax(-1)
        self.kept = weights.transpose(0, 1)
        y = F.scaled_dot_product_attention(q, q, q) if self.fused else weights @ q
        return y.permute(1, 2, 0, 3).flatten(2)


class Blocks(nn.Module):
    """Three blocks of four positions, and three heads: (B, 3, 3, 4, 4)."""

    def forward(self, x):
        q = x.unflatten(1, (3, 4)).unflatten(-1, (3, 2)).permute(0, 1, 3, 2, 4)
        return ((q @ q.mT).softmax(-1) @ q).flatten(1)
