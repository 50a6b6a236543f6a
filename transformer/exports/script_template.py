"""The text of the exported script in all its variants; `script.py` keeps what a configuration uses.

It is Python with two additions: `$name` stands for a value, and a line that ends with `#? a !b` is kept, with
everything indented under it, only where a is true and b is not.
"""

TEMPLATE = r'''"""A small Transformer learns to write words backwards: banana -> ananab. Needs only PyTorch.

This is an experiment of Headlight: its model, its training, its settings. $drawn
come from other random streams than the app's, so from the first step on losses are equal in kind, not bit
for bit. The parameters have the app's names: load_state_dict takes weights that the app trained.

Shapes in the comments:  B words in a batch   D D_MODEL      S source length   T target length  #? two
                         H N_HEADS            K D / H        Q S or T          V len(TOKENS)  #? two
Shapes in the comments:  B words in a batch   D D_MODEL      T, Q, S length of a sequence  #? !two
                         H N_HEADS            K D / H        V len(TOKENS)  #? !two
"""

import hashlib
import math
import random

import torch
import torch.nn.functional as F
from torch import nn

# ---- Settings: $recipe ----
SEED, THREADS = $seed, $threads
DEVICE = $device
N_ENCODER_LAYERS, N_DECODER_LAYERS, N_HEADS = $n_encoder_layers, $n_decoder_layers, $n_heads  #? two
N_LAYERS, N_HEADS = $n_layers, $n_heads  #? !two
D_MODEL, D_FF = $d_model, $d_ff  # width of a token's vector, and inside the feed-forward part
MAX_LEN = $max_len  # longest sequence, in tokens, that has a position  #? positions
NORM_EPS = $norm_eps  # keeps the norm from dividing by zero
EMBEDDING_STD = $embedding_std  # deviation of the first token embeddings  #? embedding_std
DROPOUT = $dropout  # share of activations that is set to zero in training  #? dropout
MIN_LETTERS, MAX_LETTERS = $min_letters, $max_letters
PAD_TO = $pad_to  # length of every training batch, in tokens  #? pad_to
EXAMPLES = $examples  # words in the training set, seen again and again  #? finite
BATCH_SIZE, STEPS, EVALUATE_EVERY = $batch_size, $steps, $evaluate_every
LEARNING_RATE, WARMUP_STEPS = $learning_rate, $warmup_steps  # the highest, and how long it rises  #? warmup
LEARNING_RATE = $learning_rate  # the highest  #? !warmup
BETAS, ADAM_EPS, WEIGHT_DECAY = ($beta_1, $beta_2), $adam_eps, $weight_decay
CLIP = $clip  # longest gradient  #? clip
LABEL_SMOOTHING = $label_smoothing  # share of the target that is spread over all tokens  #? label_smoothing
GOAL = $goal  # share of held-out words at which training ends early  #? goal

# ---- Words ----
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENS = ["[PAD]", "[SOS]", "[EOS]", "[UNK]", *LETTERS$sep]  # ids are places; [UNK] is never met here
PAD, SOS, EOS = 0, 1, 2  #? !decoder_only
PAD, SOS, EOS, SEP = 0, 1, 2, len(TOKENS) - 1  #? decoder_only


def is_held_out(word):
    """One word in ten is never trained on: its hash decides. Of 1 or 2 letters there are too few for that."""
    digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
    return len(word) >= 3 and int.from_bytes(digest, "big") % 10 == 0


def draw_word(rng, shortest, held_out):
    """Random letters; all lengths are equally likely."""
    length = rng.randint(shortest, MAX_LETTERS)
    while True:
        word = "".join(rng.choices(LETTERS, k=length))
        if is_held_out(word) == held_out:
            return word


def in_epochs(rng, examples):  #? finite
    """Batches without end: each epoch has every example once, in another order; the last is what is left."""
    while True:
        order = rng.sample(examples, len(examples))
        for first in range(0, len(order), BATCH_SIZE):
            yield order[first : first + BATCH_SIZE]


def padded(rows$at_least):
    """Rows of different lengths as one tensor, filled up with [PAD]."""
    length = max(map(len, rows))  #? !pad_to
    length = max(at_least, *map(len, rows))  #? pad_to
    return torch.tensor([row + [PAD] * (length - len(row)) for row in rows], device=DEVICE)


def as_tensors(words$pad_parameter):
    """Of abc: $of_abc"""
    words = [[TOKENS.index(letter) for letter in word] for word in words]
    src = padded([[SOS, *word, EOS] for word in words]$pad_src)  # (B, S)  #? two
    tgt = padded([[SOS, *word[::-1]] for word in words]$pad_tgt)  # (B, T)  #? two
    labels = padded([[*word[::-1], EOS] for word in words]$pad_tgt)  # (B, T)  #? two
    return src, tgt, labels  #? two
    ids = padded([[SOS, *word, EOS] for word in words]$pad_src)  # (B, T)  #? encoder_only
    labels = padded([[PAD, *word[::-1], EOS] for word in words]$pad_src)  # (B, T)  #? encoder_only
    ids = padded([[SOS, *word, SEP, *word[::-1]] for word in words]$pad_both)  # (B, T)  #? decoder_only
    labels = [[PAD] * (len(word) + 1) + word[::-1] + [EOS] for word in words]  #? decoder_only
    labels = padded(labels$pad_both)  # (B, T)  #? decoder_only
    return ids, labels  #? !two


# ---- Model ----
class MultiHeadAttention(nn.Module):
    """Each position asks with a query, offers itself with a key, and what it has to say is its value."""

    def __init__(self):
        super().__init__()
        self.to_query = nn.Linear(D_MODEL, D_MODEL$qkv_bias)
        self.to_key = nn.Linear(D_MODEL, D_MODEL$qkv_bias)
        self.to_value = nn.Linear(D_MODEL, D_MODEL$qkv_bias)
        self.to_output = nn.Linear(D_MODEL, D_MODEL$output_bias)
        self.dropout = nn.Dropout(DROPOUT)  #? drop_weights

    def forward(self, x, memory$mask_parameter):
        """x (B, Q, D) asks memory (B, S, D); the mask is True where a query may look at a key."""  #? masked
        """x (B, Q, D) asks memory (B, S, D); every query may look at every key."""  #? !masked
        projected = self.to_query(x), self.to_key(memory), self.to_value(memory)
        # Each head works on its own slice of the width: (B, Q, D) -> (B, Q, H, K) -> (B, H, Q, K)
        query, key, value = (y.unflatten(-1, (N_HEADS, -1)).transpose(1, 2) for y in projected)
        # How well does each query match each key? Divided by sqrt(K), softmax starts soft.  #? by_head
        scores = query @ key.transpose(-2, -1) / math.sqrt(D_MODEL // N_HEADS)  # (B, H, Q, S)  #? by_head
        # How well does each query match each key? Divided by sqrt(D), softer than the paper.  #? !by_head
        scores = query @ key.transpose(-2, -1) / math.sqrt(D_MODEL)  # (B, H, Q, S)  #? !by_head
        $fill_line  #? masked !optional
        if mask is not None:  #? optional
            $fill_line
        weights = scores.softmax(dim=-1)  # (B, H, Q, S), each row sums to 1
        self.weights = weights.detach()  # the maps of this pass, kept to be looked at
        weights = self.dropout(weights)  #? drop_weights
        mixed = weights @ value  # (B, H, Q, K), the values in these proportions
        return self.to_output(mixed.transpose(1, 2).flatten(2))  # heads side by side again: (B, Q, D)


class ScalarNorm(nn.Module):  #? scalar
    """Brings each vector to mean 0 and deviation 1, with one gain and one bias for all its features."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        return self.weight * centred / (x.std(dim=-1, keepdim=True) + NORM_EPS) + self.bias


class FeedForward(nn.Module):
    """Attention moves information between positions; this works on each position by itself."""

    def __init__(self):
        super().__init__()
        self.widen = nn.Linear(D_MODEL, D_FF)
        self.narrow = nn.Linear(D_FF, D_MODEL)
        self.dropout = nn.Dropout(DROPOUT)  #? drop_feed_forward

    def forward(self, x):
        return self.narrow($hidden)  # (B, Q, D) to (B, Q, D_FF) and back


class Residual(nn.Module):
    """A branch adds to what flows past it, and reads it normed: gradients reach every layer."""  #? pre
    """A branch adds to what flows past it, and the sum is normed, as in the paper."""  #? post
    """What a branch adds is normed; what flows past it is left alone."""  #? branch

    def __init__(self):
        super().__init__()
        self.norm = $norm
        self.dropout = nn.Dropout(DROPOUT)  #? drop_residual
        self.dropout = nn.Identity()  # the encoder's attention alone has another  #? drop_normed

    def forward(self, x, branch):
        return x + $branch_of_x  # (B, Q, D)  #? pre
        return self.norm(x + $branch_of_x)  # (B, Q, D)  #? post
        return x + $normed_branch  # (B, Q, D)  #? branch


class $layer(nn.Module):
    """Letters of the source look at each other."""  #? two
    """Letters of the word look at each other."""  #? encoder_only
    """Letters of the word and of the answer so far look at each other."""  #? decoder_only

    def __init__(self):
        super().__init__()
        self.attention, self.attention_residual = MultiHeadAttention(), Residual()
        self.feed_forward, self.feed_forward_residual = FeedForward(), Residual()
        self.dropout = nn.Dropout(DROPOUT)  #? drop_encoder_attention
        self.attention_residual.dropout = nn.Dropout(DROPOUT)  #? drop_normed

    def forward(self, x$mask):
        x = self.attention_residual(x, lambda y: $attention_of_y)
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(nn.Module):  #? two
    """Letters of the target look back at each other, then across at the source."""

    def __init__(self):
        super().__init__()
        self.self_attention, self.self_residual = MultiHeadAttention(), Residual()
        self.cross_attention, self.cross_residual = MultiHeadAttention(), Residual()
        self.feed_forward, self.feed_forward_residual = FeedForward(), Residual()

    def forward(self, x, memory$self_mask$cross_mask):
        x = self.self_residual(x, lambda y: self.self_attention(y, y$self_mask))
        x = self.cross_residual(x, lambda y: self.cross_attention(y, memory$cross_mask))
        return self.feed_forward_residual(x, self.feed_forward)


def sinusoids():  #? sinusoid
    """A vector for each position, (MAX_LEN, D): pairs of features that turn, each slower than the last."""
    position = torch.arange(MAX_LEN, dtype=torch.float64)[:, None]
    angle = position / 10_000 ** (torch.arange(0, D_MODEL, 2, dtype=torch.float64) / D_MODEL)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)$even_width.float()


class Transformer(nn.Module):
    """$what_it_does"""

    def __init__(self):
        super().__init__()
        self.src_embedding = nn.Embedding(len(TOKENS), D_MODEL)  #? reads
        self.tgt_embedding = nn.Embedding(len(TOKENS), D_MODEL)  #? writes !one_table
        self.tgt_embedding = self.src_embedding  # one table for both sides  #? one_table
        self.register_buffer("positions", sinusoids(), persistent=False)  #? sinusoid
        self.learned_positions = nn.Embedding(MAX_LEN, D_MODEL)  #? learned
        self.dropout = nn.Dropout(DROPOUT)  #? drop_embedding
        self.encoder = nn.ModuleList(EncoderLayer() for _ in range($n_encoder))  #? reads
        self.decoder = nn.ModuleList(DecoderLayer() for _ in range($n_decoder))  #? writes
        self.encoder_norm = $norm  #? final_norm reads
        self.decoder_norm = $norm  #? final_norm writes
        self.to_logits = nn.Linear(D_MODEL, len(TOKENS))
        for module in self.modules():  # instead of PyTorch's own first weights  #? !pytorch
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.xavier_uniform_(module.weight)  #? xavier
                nn.init.normal_(module.weight, std=0.01)  #? normal
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.src_embedding.weight, std=EMBEDDING_STD)  #? embedding_std reads
        nn.init.normal_(self.tgt_embedding.weight, std=EMBEDDING_STD)  #? embedding_std writes !one_table
        self.$written.weight.data[PAD] = 0.0  #? padding_row
        self.$written.padding_idx = PAD  # no gradient moves it from zero  #? padding_row

    def forward(self, src, tgt):  #? two
        """Source (B, S) and target so far (B, T) to logits of each next token, (B, T, V)."""
        cross_mask = (src != PAD)[:, None, None, :]  # (B, 1, 1, S): nobody looks at padding  #? padding
        self_mask = (tgt != PAD)[:, None, None, :]  # (B, 1, 1, T)  #? padding
        place = torch.arange(tgt.size(1), device=tgt.device)  #? causal
        self_mask = self_mask & (place[:, None] >= place)$not_ahead  #? causal padding
        self_mask = place[:, None] >= place$not_ahead  #? causal !padding
        # Everybody reads ahead, where its own answer stands: a low loss says nothing.  #? !causal
        memory = self.src_embedding(src)$src_scale$src_positions
        memory = self.dropout(memory)  #? drop_embedding
        for layer in self.encoder:
            memory = layer(memory$cross_mask)  # (B, S, D)
        memory = self.encoder_norm(memory)  #? final_norm
        x = self.tgt_embedding(tgt)$tgt_scale$tgt_positions
        x = self.dropout(x)  #? drop_embedding
        for layer in self.decoder:
            x = layer(x, memory$self_mask$cross_mask)  # (B, T, D)
        return self.to_logits(self.decoder_norm(x))  #? final_norm
        return self.to_logits(x)  #? !final_norm

    def forward(self, ids):  #? !two
        """Token ids (B, T) to logits of what each place writes, (B, T, V)."""
        mask = (ids != PAD)[:, None, None, :]  # (B, 1, 1, T): nobody looks at padding  #? padding
        place = torch.arange(ids.size(1), device=ids.device)  #? causal
        mask = mask & (place[:, None] >= place)$not_ahead  #? causal padding
        mask = place[:, None] >= place$not_ahead  #? causal !padding
        # Everybody reads ahead, where its own answer stands: a low loss says nothing.  #? !causal writes
        x = self.$written(ids)$ids_scale$ids_positions
        x = self.dropout(x)  #? drop_embedding
        for layer in self.$stack:
            x = layer(x$mask)  # (B, T, D)
        return self.to_logits(self.${stack}_norm(x))  #? final_norm
        return self.to_logits(x)  #? !final_norm


# ---- Training ----
def learning_rate(step):
    """Rises from zero, then falls to zero with the last step."""  #? warmup !constant
    """Falls to zero with the last step."""  #? !warmup !constant
    """Rises from zero, then stays."""  #? warmup constant
    """The same at every step."""  #? !warmup constant
    if step <= WARMUP_STEPS:  #? warmup
        return LEARNING_RATE * step / WARMUP_STEPS
    left = (STEPS - step + 1) / (STEPS - WARMUP_STEPS + 1)  # from 1 almost down to 0  #? warmup !constant
    left = (STEPS - step + 1) / (STEPS + 1)  # from almost 1 almost down to 0  #? !warmup !constant
    return LEARNING_RATE * left  #? linear
    return LEARNING_RATE * 0.5 * (1.0 - math.cos(math.pi * left))  #? cosine
    return LEARNING_RATE  #? constant


def train(model, batches):
    """For each batch of words, make the right answers a little more likely. Yields the steps and losses."""
    optimizer = $optimizer(model.parameters(), betas=BETAS, eps=ADAM_EPS, weight_decay=WEIGHT_DECAY)
    for step, words in enumerate(batches, start=1):
        src, tgt, labels = as_tensors(words$pad_argument)  #? two
        logits = model(src, tgt).flatten(0, 1)$told  #? two
        ids, labels = as_tensors(words$pad_argument)  #? !two
        logits = model(ids).flatten(0, 1)$told  #? !two
        loss = F.cross_entropy(logits, labels.flatten(), ignore_index=PAD$smoothing)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)  #? clip
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.step()
        yield step, loss.item()


# ---- What was learned ----
@torch.no_grad()
def exact_share(model, words):
    """Share of words that the model, taking the most probable token each time, writes without a mistake."""
    model.eval()  # no dropout  #? dropout
    src, tgt, labels = as_tensors(words)  #? two causal
    ids, labels = as_tensors(words)  #? !two one_pass
    $one_pass  #? writes causal
    right = (model(src, tgt).argmax(dim=-1) == labels) | (labels == PAD)  # (B, T)  #? two causal
    right = (model(ids).argmax(dim=-1) == labels) | (labels == PAD)  # (B, T)  #? !two one_pass
    labels = as_tensors(words)[-1]  #? !one_pass
    right = (write(model, words) == labels) | (labels == PAD)  # (B, T)  #? !one_pass
    model.train()  #? dropout
    return right.all(dim=1).sum().item() / len(words)


def write(model, words):  #? two !causal
    """What the model writes by itself, (B, T); all is read anew for each token, since rows look ahead."""
    src, _, labels = as_tensors(words)
    tgt = torch.full((len(words), 1), SOS, device=DEVICE)
    for _ in range(labels.size(1)):
        newest = model(src, tgt)[:, -1:].argmax(dim=-1)  # (B, 1)
        tgt = torch.cat([tgt, newest], dim=1)
    return tgt[:, 1:]


def write(model, words):  #? decoder_only !causal
    """What the model writes by itself, (B, T); all is read anew for each token, since rows look ahead."""
    ids, labels = as_tensors(words)
    place = (labels != PAD).int().argmax(dim=1)  # (B,), at first that of [SEP]
    known = torch.arange(ids.size(1), device=DEVICE) <= place[:, None]
    ids = F.pad(ids.masked_fill(~known, PAD), (0, 1))  # the answers are taken away
    every, written = torch.arange(len(words), device=DEVICE), torch.full_like(labels, PAD)
    for _ in range(max(map(len, words)) + 1):
        newest = model(ids[:, : place.max() + 1])[every, place].argmax(dim=-1)  # (B,)
        written[every, place] = newest
        place = place + 1
        ids[every, place] = newest
    return written


def mirror_scores(model, words):
    """Each head's mean weight on the mirrored letter, ($n_looking, H); 1 is a perfect anti-diagonal."""
    src, tgt, _ = as_tensors(words)  #? two
    model(src, tgt)  #? two
    model(as_tensors(words)[0])  #? !two
    maps = torch.stack([layer.$looking.weights for layer in model.$stack])  # (layers, B, H, T, S)
    total = 0
    for b, word in enumerate(words):
        n, i = len(word), torch.arange(len(word))  # $row_writes
        total += maps[:, b][..., $mirrored_row, n - i].sum(dim=-1)
    return total / sum(map(len, words))


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(THREADS)
    rng, fixed = random.Random(SEED), random.Random(20171206)  # held-out words are the same for every SEED
    held_out = [draw_word(fixed, max(3, MIN_LETTERS), held_out=True) for _ in range(1000)]
    $endless  #? !finite
    examples = [draw_word(rng, MIN_LETTERS, held_out=False) for _ in range(EXAMPLES)]  #? finite
    batches = (words for _, words in zip(range(STEPS), in_epochs(rng, examples)))  #? finite
    model = Transformer().to(DEVICE)
    for step, loss in train(model, batches):
        if step % EVALUATE_EVERY == 0 or step == STEPS:
            share = exact_share(model, held_out[:200])
            print(f"step {step:5}   loss {loss:.4f}   exact {share:6.1%} of 200 held-out words", flush=True)
            if share >= GOAL and exact_share(model, held_out) >= GOAL:  #? goal
                break

    print(f"\n{exact_share(model, held_out):.1%} of 1,000 words that were never trained on are exact")
    model.eval()  #? dropout
    scores = mirror_scores(model, held_out[:64])
    layer, head = divmod(int(scores.argmax()), N_HEADS)
    print(f"Clearest: $stack layer {layer + 1}, head {head + 1}; mirror score {scores.max():.2f}.")
    src = as_tensors($asked)[0][:1]  #? two
    written, rows = [SOS], []  #? two
    while written[-1] != EOS and len(written) < src.size(1):  #? two
        logits = model(src, torch.tensor([written], device=DEVICE))  # (1, T, V)
        written.append(int(logits[0, -1].argmax()))
        rows.append(model.decoder[layer].cross_attention.weights[0, head, -1].tolist())
    columns = as_tensors($asked)[0][0]  #? encoder_only
    written = model(columns[None])[0, 1:].argmax(dim=-1)  # [SOS] becomes nothing  #? encoder_only
    rows = model.encoder[layer].attention.weights[0, head, 1:].tolist()  #? encoder_only
    columns, rows = [SOS, *map(TOKENS.index, "$word"), SEP], []  #? decoder_only
    while columns[-1] != EOS and len(rows) <= len("$word"):  #? decoder_only
        logits = model(torch.tensor([columns], device=DEVICE))  # (1, T, V)
        columns.append(int(logits[0, -1].argmax()))
        rows.append(model.decoder[layer].attention.weights[0, head, -1].tolist())
    print("Its weights in % while it writes $word backwards (rows; columns are read):\n")
    print(" " * 6 + "".join(f"{TOKENS[i]:>6}" for i in $columns))
    for i, row in zip($spelled, rows, strict=True):
        print(f"{TOKENS[i]:>6}" + "".join(f"{100 * w:6.0f}" if w >= 0.01 else "     ." for w in row))


if __name__ == "__main__":
    main()
'''
