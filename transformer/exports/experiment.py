"""A small Transformer learns to write words backwards: banana -> ananab. Needs only PyTorch.

This is an experiment of Headlight: its model, its training, its settings. Words, initial weights and
dropout come from other random streams than the app's, so losses are similar to the app's, but not equal bit
for bit. The parameters have the app's names: load_state_dict takes weights that the app trained.

Shapes in the comments:  B words in a batch   D D_MODEL      S source length   T target length
                         H N_HEADS            K D / H        Q S or T          V len(TOKENS)
"""

import hashlib
import math
import random
from itertools import islice

import torch
import torch.nn.functional as F
from torch import nn

# ---- Settings, by the app's names: change one and run again ----
RECIPE = "default"  # the recipe that these settings began as
SEED = 0
THREADS = 1
DEVICE = "auto"  # cpu, cuda, mps, or auto: the fastest available
# The words
MIN_LETTERS = 1
MAX_LETTERS = 12
EXAMPLES = None  # words in a finite training set, seen again and again; None: always new ones
# The model
TOPOLOGY = "encoder-decoder"  # encoder-decoder, encoder-only or decoder-only
N_ENCODER_LAYERS = 2
N_DECODER_LAYERS = 2
N_HEADS = 4
D_MODEL = 32  # width of a token's vector
D_FF = 128  # width inside the feed-forward part
MAX_LEN = 26  # longest sequence, in tokens, that has a position
QKV_BIAS = True
OUTPUT_BIAS = True
SCORE_SCALE = "sqrt_d_head"  # divides the scores: sqrt_d_head (the paper), sqrt_d_model (softer) or none
CAUSAL_MASK = True  # no position that writes attends to later ones, which hold its answer
PADDING_MASK = True  # no position looks at [PAD]
MASK_FILL = "-inf"  # the score of a masked cell: -inf or -1e9
NORM = "layer"  # layer, or scalar: one gain and one bias for all features
NORM_EPS = 1e-05  # keeps the norm from dividing by zero
NORM_PLACEMENT = "pre"  # norm of a branch's input: pre; of the sum: post; of a branch's output: branch
FINAL_NORM = True  # one more norm after each stack
ACTIVATION = "relu"  # relu, leaky_relu or gelu
POSITIONS = "sinusoid"  # sinusoid, learned or none
EMBEDDING_SCALE = "both"  # where token vectors are multiplied by sqrt(D): both, encoder or none
EMBEDDING_TABLES = "two"  # two, or one for source and target
PADDING_ROW = False  # whether the vector of [PAD] is zero and stays so
INITIALISATION = "pytorch"  # pytorch (its defaults), xavier or normal
EMBEDDING_STD = 0.02  # standard deviation of the initial token vectors; None: as INITIALISATION
DROPOUT = 0.0  # share of activations that is set to zero in training
# Where dropout acts: embedding, attention_weights, feed_forward, residual, encoder_attention
DROPOUT_ON = ["embedding", "attention_weights", "feed_forward", "residual"]
# The training
BATCH_SIZE = 64
STEPS = 300
OPTIMIZER = "adamw"  # adamw or adam
LEARNING_RATE = 0.005  # the highest
BETAS = [0.9, 0.98]
ADAM_EPS = 1e-09
WEIGHT_DECAY = 0.01
WARMUP_STEPS = 50  # steps over which the rate rises
SCHEDULE = "linear"  # after the warm-up: linear or cosine decay to zero, or constant
CLIP = 1.0  # largest norm of the gradient; None: no clipping
LABEL_SMOOTHING = 0.0  # share of the target that is spread over all tokens
EVALUATE_EVERY = 25  # steps
GOAL = None  # share of held-out words at which training ends early

# ---- Words ----
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENS = ["[PAD]", "[SOS]", "[EOS]", "[UNK]", *LETTERS]  # ids are indices; [UNK] does not occur here
if TOPOLOGY == "decoder-only":
    TOKENS.append("[SEP]")
PAD, SOS, EOS, SEP = 0, 1, 2, len(TOKENS) - 1
if DEVICE == "auto":
    DEVICE = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


def is_held_out(word):
    """Whether a word is held out: its hash chooses one in ten, but none of the few with 1 or 2 letters."""
    digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
    return len(word) >= 3 and int.from_bytes(digest, "big") % 10 == 0


def draw_word(rng, shortest, held_out):
    """A random word; all lengths are equally likely."""
    length = rng.randint(shortest, MAX_LETTERS)
    while True:
        word = "".join(rng.choices(LETTERS, k=length))
        if is_held_out(word) == held_out:
            return word


def draw_batches(rng):
    """Endless batches of training words; a finite set comes once per epoch, each time in a new order."""
    if EXAMPLES is None:
        while True:
            yield [draw_word(rng, MIN_LETTERS, held_out=False) for _ in range(BATCH_SIZE)]
    examples = [draw_word(rng, MIN_LETTERS, held_out=False) for _ in range(EXAMPLES)]
    while True:
        order = rng.sample(examples, EXAMPLES)
        for first in range(0, EXAMPLES, BATCH_SIZE):
            yield order[first : first + BATCH_SIZE]


def padded(rows):
    """Rows of different lengths as one tensor, filled up with [PAD]."""
    length = max(map(len, rows))
    return torch.tensor([row + [PAD] * (length - len(row)) for row in rows], device=DEVICE)


def as_tensors(words):
    """A batch: the inputs src (B, S) and tgt (B, T), and the labels (B, T); [PAD] labels do not count.

    For the word abc; an encoder alone has no tgt, and a decoder alone no src:

        encoder-decoder   src [SOS] a b c [EOS]   tgt [SOS] c b a              labels c b a [EOS]
        encoder-only      src [SOS] a b c [EOS]                                labels [PAD] c b a [EOS]
        decoder-only                              tgt [SOS] a b c [SEP] c b a  labels (4 [PAD]) c b a [EOS]
    """
    words = [[TOKENS.index(letter) for letter in word] for word in words]
    src = padded([[SOS, *word, EOS] for word in words])
    if TOPOLOGY == "encoder-only":
        return src, None, padded([[PAD, *word[::-1], EOS] for word in words])
    if TOPOLOGY == "encoder-decoder":
        tgt = padded([[SOS, *word[::-1]] for word in words])
        return src, tgt, padded([[*word[::-1], EOS] for word in words])
    tgt = padded([[SOS, *word, SEP, *word[::-1]] for word in words])
    return None, tgt, padded([[PAD] * (len(word) + 1) + word[::-1] + [EOS] for word in words])


# ---- Model ----
def dropout(*places):
    """Dropout that acts if one of these places is in DROPOUT_ON."""
    return nn.Dropout(DROPOUT if set(places) & set(DROPOUT_ON) else 0.0)


class MultiHeadAttention(nn.Module):
    """Each position compares its query with all keys, and takes a weighted mean of the values."""

    def __init__(self):
        super().__init__()
        self.to_query = nn.Linear(D_MODEL, D_MODEL, bias=QKV_BIAS)
        self.to_key = nn.Linear(D_MODEL, D_MODEL, bias=QKV_BIAS)
        self.to_value = nn.Linear(D_MODEL, D_MODEL, bias=QKV_BIAS)
        self.to_output = nn.Linear(D_MODEL, D_MODEL, bias=OUTPUT_BIAS)
        self.dropout = dropout("attention_weights")

    def forward(self, x, memory, mask):
        """Let x (B, Q, D) attend to memory (B, S, D); the mask is True where a query may attend to a key."""
        projected = self.to_query(x), self.to_key(memory), self.to_value(memory)
        # Each head works on its own slice of the width: (B, Q, D) -> (B, Q, H, K) -> (B, H, Q, K)
        query, key, value = (y.unflatten(-1, (N_HEADS, -1)).transpose(1, 2) for y in projected)
        # How well each query matches each key. The division by sqrt(K) keeps the softmax soft at first.
        width = {"sqrt_d_head": D_MODEL // N_HEADS, "sqrt_d_model": D_MODEL, "none": 1}[SCORE_SCALE]
        scores = query @ key.transpose(-2, -1) / math.sqrt(width)  # (B, H, Q, S)
        scores = scores.masked_fill(~mask, float(MASK_FILL))  # e^MASK_FILL = 0: no weight at all where masked
        weights = scores.softmax(dim=-1)  # (B, H, Q, S), each row sums to 1
        self.weights = weights.detach()  # the maps of this pass, kept to be shown
        mixed = self.dropout(weights) @ value  # (B, H, Q, K), weighted means of the values
        return self.to_output(mixed.transpose(1, 2).flatten(2))  # heads side by side again: (B, Q, D)


class ScalarNorm(nn.Module):
    """Brings each vector to mean 0 and deviation 1, with one gain and one bias for all its features."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        return self.weight * centred / (x.std(dim=-1, keepdim=True) + NORM_EPS) + self.bias


def norm():
    """The norm that NORM names; LayerNorm has a gain and a bias for each feature."""
    return ScalarNorm() if NORM == "scalar" else nn.LayerNorm(D_MODEL, eps=NORM_EPS)


class FeedForward(nn.Module):
    """Attention moves information between positions; this works on each position by itself."""

    def __init__(self):
        super().__init__()
        self.widen = nn.Linear(D_MODEL, D_FF)
        self.narrow = nn.Linear(D_FF, D_MODEL)
        self.dropout = dropout("feed_forward")

    def forward(self, x):
        hidden = getattr(F, ACTIVATION)(self.widen(x))  # (B, Q, D_FF)
        return self.narrow(self.dropout(hidden))  # (B, Q, D)


class Residual(nn.Module):
    """Adds the output of a branch to its input; NORM_PLACEMENT says where the norm is."""

    def __init__(self, *dropout_places):
        super().__init__()
        self.norm = norm()
        self.dropout = dropout("residual", *dropout_places)

    def forward(self, x, branch):
        if NORM_PLACEMENT == "pre":  # gradients reach every layer
            return x + self.dropout(branch(self.norm(x)))
        if NORM_PLACEMENT == "post":  # as in the paper
            return self.norm(x + self.dropout(branch(x)))
        return x + self.dropout(self.norm(branch(x)))


class SelfAttentionLayer(nn.Module):
    """Letters look at each other: the layer of an encoder, and of a decoder that stands alone."""

    def __init__(self):
        super().__init__()
        self.attention, self.attention_residual = MultiHeadAttention(), Residual("encoder_attention")
        self.feed_forward, self.feed_forward_residual = FeedForward(), Residual()

    def forward(self, x, mask):
        x = self.attention_residual(x, lambda y: self.attention(y, y, mask))
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Letters of the target look back at each other, then across at the source."""

    def __init__(self):
        super().__init__()
        self.self_attention, self.self_residual = MultiHeadAttention(), Residual()
        self.cross_attention, self.cross_residual = MultiHeadAttention(), Residual()
        self.feed_forward, self.feed_forward_residual = FeedForward(), Residual()

    def forward(self, x, self_mask, memory, cross_mask):
        x = self.self_residual(x, lambda y: self.self_attention(y, y, self_mask))
        x = self.cross_residual(x, lambda y: self.cross_attention(y, memory, cross_mask))
        return self.feed_forward_residual(x, self.feed_forward)


def sinusoids():
    """A vector for each position, (MAX_LEN, D): pairs of sine and cosine, each slower than the last."""
    position = torch.arange(MAX_LEN, dtype=torch.float64)[:, None]
    angle = position / 10_000 ** (torch.arange(0, D_MODEL, 2, dtype=torch.float64) / D_MODEL)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :D_MODEL].float()


def mask_for(tokens, causal):
    """Where queries may attend to the keys of tokens (B, T): broadcastable to (B, H, Q, T)."""
    n = tokens.size(1)
    mask = torch.ones(1, 1, 1, n, dtype=torch.bool, device=DEVICE)
    if PADDING_MASK:
        mask = (tokens != PAD)[:, None, None, :]  # (B, 1, 1, T)
    if CAUSAL_MASK and causal:
        mask = mask & torch.ones(n, n, dtype=torch.bool, device=DEVICE).tril()  # (B, 1, T, T)
    return mask


def draw_first_weights(model, tables):
    """Initialise the weights as the settings say; where they say nothing, those of PyTorch stay."""
    draw = {"xavier": nn.init.xavier_uniform_, "normal": lambda weight: nn.init.normal_(weight, std=0.01)}
    for module in model.modules():
        if INITIALISATION in draw and isinstance(module, (nn.Linear, nn.Embedding)):
            draw[INITIALISATION](module.weight)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
    for table in tables:
        if EMBEDDING_STD is not None:
            nn.init.normal_(table.weight, std=EMBEDDING_STD)
    if PADDING_ROW:
        tables[-1].weight.data[PAD] = 0.0
        tables[-1].padding_idx = PAD  # no gradient moves it from zero


class Transformer(nn.Module):
    """Predicts the answer's tokens from a source and the target so far, or from one of the two."""

    def __init__(self):
        super().__init__()
        if POSITIONS == "sinusoid":
            self.register_buffer("positions", sinusoids(), persistent=False)
        elif POSITIONS == "learned":
            self.learned_positions = nn.Embedding(MAX_LEN, D_MODEL)
        self.dropout = dropout("embedding")
        tables = []  # of token vectors; the stack that writes has the last one
        if TOPOLOGY != "decoder-only":
            self.src_embedding = nn.Embedding(len(TOKENS), D_MODEL)
            self.encoder = nn.ModuleList(SelfAttentionLayer() for _ in range(N_ENCODER_LAYERS))
            self.encoder_norm = norm() if FINAL_NORM else nn.Identity()
            tables.append(self.src_embedding)
        if TOPOLOGY != "encoder-only":
            shared = tables and EMBEDDING_TABLES == "one"
            self.tgt_embedding = self.src_embedding if shared else nn.Embedding(len(TOKENS), D_MODEL)
            layer = DecoderLayer if TOPOLOGY == "encoder-decoder" else SelfAttentionLayer
            self.decoder = nn.ModuleList(layer() for _ in range(N_DECODER_LAYERS))
            self.decoder_norm = norm() if FINAL_NORM else nn.Identity()
            tables.append(self.tgt_embedding)
        self.to_logits = nn.Linear(D_MODEL, len(TOKENS))
        draw_first_weights(self, tables)

    def embed(self, table, tokens, scaled):
        """Token ids (B, T) to vectors (B, T, D), with positions."""
        x = table(tokens) * (math.sqrt(D_MODEL) if scaled else 1.0)
        if POSITIONS == "sinusoid":
            x = x + self.positions[: tokens.size(1)]
        elif POSITIONS == "learned":
            x = x + self.learned_positions.weight[: tokens.size(1)]
        return self.dropout(x)

    def forward(self, src, tgt):
        """Source (B, S) and target so far (B, T) to logits of each next token, (B, T, V)."""
        if src is not None:
            memory = self.embed(self.src_embedding, src, EMBEDDING_SCALE != "none")
            for layer in self.encoder:
                memory = layer(memory, mask_for(src, causal=tgt is None))  # (B, S, D)
            memory = self.encoder_norm(memory)
            if tgt is None:
                return self.to_logits(memory)
        alone = src is None
        scaled = EMBEDDING_SCALE == "both" or (alone and EMBEDDING_SCALE == "encoder")
        x = self.embed(self.tgt_embedding, tgt, scaled)
        read = () if alone else (memory, mask_for(src, causal=False))
        for layer in self.decoder:
            x = layer(x, mask_for(tgt, causal=True), *read)  # (B, T, D)
        return self.to_logits(self.decoder_norm(x))


# ---- Training ----
def learning_rate(step):
    """The rate at a step: it rises from zero, then falls almost to zero, or stays constant."""
    warmup = min(WARMUP_STEPS, STEPS)
    if step <= warmup:
        return LEARNING_RATE * step / warmup
    left = (STEPS - step + 1) / (STEPS - warmup + 1)  # from 1 almost down to 0
    shapes = {"linear": left, "cosine": 0.5 * (1.0 - math.cos(math.pi * left)), "constant": 1.0}
    return LEARNING_RATE * shapes[SCHEDULE]


def train(model, batches):
    """For each batch of words, make the right answers a little more likely. Yields the steps and losses."""
    optimizer_class = torch.optim.AdamW if OPTIMIZER == "adamw" else torch.optim.Adam
    optimizer = optimizer_class(model.parameters(), betas=BETAS, eps=ADAM_EPS, weight_decay=WEIGHT_DECAY)
    for step, words in enumerate(islice(batches, STEPS), start=1):
        model.train()
        src, tgt, labels = as_tensors(words)
        logits = model(src, tgt)  # all positions at once, each with the right letters before it
        loss = F.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, label_smoothing=LABEL_SMOOTHING
        )
        optimizer.zero_grad()
        loss.backward()
        if CLIP is not None:
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.step()
        yield step, loss.item()


# ---- What was learned ----
@torch.no_grad()
def write(model, words):
    """The model's free-running output, (B, T), at the places of the labels: always the likeliest token."""
    model.eval()  # no dropout
    src, tgt, labels = as_tensors(words)
    if TOPOLOGY == "encoder-only":
        return model(src, tgt).argmax(dim=-1)  # all places at once
    rows, place = torch.arange(len(words), device=DEVICE), (labels != PAD).int().argmax(dim=1)  # (B,)
    known = torch.arange(tgt.size(1), device=DEVICE) <= place[:, None]
    tgt = F.pad(tgt.masked_fill(~known, PAD), (0, 1))  # the right letters are removed
    written = torch.full_like(labels, PAD)
    for _ in range(max(map(len, words)) + 1):  # no cache: everything is read again for each token
        newest = model(src, tgt[:, : place.max() + 1])[rows, place].argmax(dim=-1)  # (B,)
        written[rows, place] = newest
        place = place + 1
        tgt[rows, place] = newest
    return written


def exact_share(model, words):
    """Share of words that the model writes without a mistake."""
    labels = as_tensors(words)[-1]
    right = (write(model, words) == labels) | (labels == PAD)  # (B, T)
    return right.all(dim=1).sum().item() / len(words)


def writing_attentions(model):
    """The attention of each layer that reads the question: cross-attention if there are two stacks."""
    layers = model.encoder if TOPOLOGY == "encoder-only" else model.decoder
    return [layer.cross_attention if TOPOLOGY == "encoder-decoder" else layer.attention for layer in layers]


@torch.no_grad()
def mirror_scores(model, words):
    """Each head's mean weight on the mirrored letter, (layers, H); 1 is a perfect anti-diagonal."""
    model.eval()
    src, tgt, labels = as_tensors(words)
    model(src, tgt)
    maps = torch.stack([attention.weights for attention in writing_attentions(model)])  # (layers, B, H, T, S)
    total = 0
    for b, word in enumerate(words):
        n, i = len(word), torch.arange(len(word))
        first = (labels[b] != PAD).int().argmax().item()  # the row that writes the answer's first letter
        total += maps[:, b, :, first + i, n - i].sum(dim=-1)  # column 0 is [SOS]
    return total / sum(map(len, words))


def show_clearest(model, words):
    """Print one map of the first word: that of the head whose mirror score over all words is highest."""
    src, tgt, labels = as_tensors(words)
    columns, rows = (tgt if src is None else src)[0], labels[0] != PAD
    written = write(model, words)[0, rows]
    scores = mirror_scores(model, words)
    layer, head = divmod(int(scores.argmax()), N_HEADS)
    weights = writing_attentions(model)[layer].weights[0, head, rows][:, columns != PAD]
    print(f"Clearest: layer {layer + 1}, head {head + 1}; mirror score {scores.max():.2f}.")
    print(f"Its weights in % while it writes {words[0]} backwards (rows; columns are read):\n")
    print(" " * 6 + "".join(f"{TOKENS[i]:>6}" for i in columns if i != PAD))
    for i, row in zip(written, weights.tolist(), strict=True):
        print(f"{TOKENS[i]:>6}" + "".join(f"{100 * w:6.0f}" if w >= 0.01 else "     ." for w in row))


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(THREADS)
    rng, fixed = random.Random(SEED), random.Random(20171206)  # held-out words are the same for every SEED
    held_out = [draw_word(fixed, max(3, MIN_LETTERS), held_out=True) for _ in range(1000)]
    model = Transformer().to(DEVICE)
    for step, loss in train(model, draw_batches(rng)):
        if step % EVALUATE_EVERY == 0 or step == STEPS:
            share = exact_share(model, held_out[:200])
            print(f"step {step:5}   loss {loss:.4f}   exact {share:6.1%} of 200 held-out words", flush=True)
            if GOAL is not None and share >= GOAL and exact_share(model, held_out) >= GOAL:
                break

    print(f"\n{exact_share(model, held_out):.1%} of 1,000 words that were never trained on are exact")
    show_clearest(model, held_out[:64])


if __name__ == "__main__":
    main()
