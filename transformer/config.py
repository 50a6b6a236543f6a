"""Every setting of a run: the model, its training, and what ties them together. Frozen, checked, JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, ClassVar, Self, get_type_hints

from transformer.errors import InputError

FORMAT = 1
"""Version of the JSON that `RunConfig.to_json` writes."""

LARGEST = sys.float_info.max
"""A larger whole number is no finite number to the arithmetic of a model."""
DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("float32", "bfloat16")
DROPOUT_PLACES = ("embedding", "attention_weights", "feed_forward", "residual", "encoder_attention")
KINDS_OF = {
    "encoder-decoder": ("cross", "encoder", "decoder"),
    "encoder-only": ("encoder",),
    "decoder-only": ("sequence",),
}
"""Topology to its kinds of attention; the first is the one through which the answer reads the question."""
LETTER_TASKS = ("reverse", "copy", "sort", "caesar")
"""Tasks on random strings of letters."""
GRAMMARS = ("en-fr", "en-it", "zh-en")
"""Tasks on sentences that a grammar makes."""
TASKS = (*LETTER_TASKS, "dates", "numbers", *GRAMMARS, "pairs")
"""Everything that can be learned; pairs are a person's own."""
TOKENIZERS = ("auto", "characters", "words", "bpe", "file")
"""How text becomes tokens."""
LANGUAGES = ("en", "fr", "de")
"""In which numbers can be written."""


def _whole(config: object, name: str, low: int, high: int, advice: str = "") -> None:
    """Refuse a field that is not a whole number from `low` to `high`."""
    value = getattr(config, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name}={value!r} is not a whole number; choose one from {low} to {high:,}.", name)
    if not low <= value <= high:
        tail = f" {advice}" if advice else ""
        raise InputError(
            f"{name}={value:,} is outside {low} to {high:,}; choose a value in between.{tail}", name
        )


def _number(config: object, name: str, low: float, high: float, *, above: bool = False) -> None:
    """Refuse a field that is not a finite number in [low, high], or in (low, high] where `above`."""
    value = getattr(config, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise InputError(
            f"{name}={value!r} is not a finite number; choose one like {max(low, 0.001):g}.", name
        )
    if not low <= value <= high or (above and value == low):
        span = f"more than {low:g}" if above else f"at least {low:g}"
        limit = span if math.isinf(high) else f"{span} and at most {high:g}"
        raise InputError(f"{name}={value:g} cannot be used; choose {limit}.", name)


def _choice(config: object, name: str, options: tuple[str, ...]) -> None:
    """Refuse a value that does not exist."""
    value = getattr(config, name)
    if value not in options:
        raise InputError(f"{name}={value!r} does not exist; choose {_either(options)}.", name)


def _either(options: tuple[str, ...]) -> str:
    return " or ".join([", ".join(options[:-1]), options[-1]] if len(options) > 1 else options)


def _flag(config: object, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(config, name), bool):
            raise InputError(f"{name}={getattr(config, name)!r} is neither true nor false; choose one.", name)


class _Json:
    """To and from plain dictionaries, refusing names that do not exist."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Build from what `to_dict` gave; absent names keep their defaults.

        Raises:
            InputError: a name that does not exist, or a value that cannot be used.
        """
        if not isinstance(values, dict):
            raise InputError(f"{cls.__name__} needs a JSON object, not {type(values).__name__}.")
        known = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        for name in values:
            if name not in known:
                near = get_close_matches(str(name), known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}."
                raise InputError(f"{cls.__name__} has no setting {name!r}; {hint}", str(name))
        kinds = get_type_hints(cls)
        made: dict[str, Any] = {}
        for name, value in values.items():
            kind = kinds[name]
            if isinstance(kind, type) and issubclass(kind, _Json):
                value = kind.from_dict(value)
            elif isinstance(value, list):  # JSON has no tuples
                value = tuple(value)
            made[name] = value
        return cls(**made)


@dataclass(frozen=True, kw_only=True)
class ModelConfig(_Json):
    """The architecture of one Transformer; every row of the recipes' table is a field."""

    MAX_WIDTH: ClassVar[int] = 1024
    MAX_LAYERS: ClassVar[int] = 12

    topology: str = "encoder-decoder"
    """Which stacks there are: encoder-decoder; encoder-only, which predicts a token at each position of the
    question; decoder-only, which goes on after the question and a separator. Sizes of a stack that is not
    there have no meaning."""
    src_vocab_size: int = 30
    """Source tokens, special tokens included; a run takes it from its task."""
    tgt_vocab_size: int = 30
    """Target tokens, special tokens included; a run takes it from its task."""
    max_len: int = 26
    """Longest sequence in tokens that has a position; a run takes it from its task and topology."""
    n_encoder_layers: int = 2
    """Layers of the encoder."""
    n_decoder_layers: int = 2
    """Layers of the decoder."""
    n_heads: int = 4
    """Attention heads per layer (H); must divide d_model."""
    d_model: int = 32
    """Width of the residual stream (D)."""
    d_ff: int = 128
    """Width of the hidden layer of the feed-forward part."""
    dropout: float = 0.0
    """Share of activations dropped in training, at the places that `dropout_on` names."""
    dropout_on: tuple[str, ...] = ("embedding", "attention_weights", "feed_forward", "residual")
    """Where dropout acts: embedding, attention_weights, feed_forward, residual, and encoder_attention: the
    attention branch of the encoder, or of the one stack that there is."""
    qkv_bias: bool = True
    """Whether the projections to queries, keys and values have a bias."""
    output_bias: bool = True
    """Whether the projection of the concatenated heads back to d_model has a bias."""
    score_scale: str = "sqrt_d_head"
    """What scores are divided by: sqrt_d_head (the paper) or sqrt_d_model (softer attention)."""
    norm_placement: str = "pre"
    """pre: x + f(norm(x)); post: norm(x + f(x)), the paper's; branch: x + norm(f(x))."""
    final_norm: bool = True
    """Whether a norm follows the last layer of each stack."""
    norm: str = "layer"
    """layer: a gain and a bias per feature; scalar: one gain and one bias, unbiased deviation plus eps."""
    norm_eps: float = 1e-5
    """Keeps the norm from dividing by zero."""
    activation: str = "relu"
    """Between the two matrices of the feed-forward part: relu, leaky_relu or gelu."""
    embedding_scale: str = "both"
    """Which embeddings are multiplied by sqrt(d_model): none, encoder (of two stacks the first) or both."""
    positions: str = "sinusoid"
    """How positions enter: sinusoid (the paper), learned or none."""
    embedding_tables: str = "two"
    """two: source and target have a table each; one: they share it (equal vocabularies needed)."""
    padding_row: bool = False
    """Whether [PAD]'s embedding is zero and stays so, in the table of the stack that writes."""
    causal_mask: bool | None = None
    """Whether the self-attention of the stack that writes is kept from reading ahead; none: as the topology
    has it, which is yes in a decoder and no in an encoder that stands alone."""
    padding_mask: bool = True
    """Whether [PAD] is hidden from attention."""
    mask_fill: str = "-inf"
    """What a blocked score becomes before the softmax: -inf or -1e9. They differ where a row has nothing
    left: with -inf it reads nothing here (zeros), with -1e9 it reads everything alike."""
    initialisation: str = "pytorch"
    """First weights: xavier (uniform, every matrix), pytorch (its defaults) or normal (deviation 0.01)."""
    embedding_std: float | None = 0.02
    """Deviation of the first token embeddings (quiet tokens let positions lead); none: as initialisation."""

    def __post_init__(self) -> None:
        _choice(self, "topology", tuple(KINDS_OF))
        _whole(self, "src_vocab_size", 5, 100_000)
        _whole(self, "tgt_vocab_size", 5, 100_000)
        _whole(self, "max_len", 4, 1024)
        _whole(self, "n_encoder_layers", 1, self.MAX_LAYERS)
        _whole(self, "n_decoder_layers", 1, self.MAX_LAYERS)
        _whole(self, "d_model", 2, self.MAX_WIDTH, "Widths of 32 to 128 learn live on a laptop.")
        _whole(self, "n_heads", 1, 64)
        _whole(self, "d_ff", 1, 4 * self.MAX_WIDTH)
        if self.d_model % self.n_heads:
            fitting = [str(n) for n in range(1, min(self.d_model, 16) + 1) if self.d_model % n == 0]
            raise InputError(
                f"d_model={self.d_model} cannot be split into {self.n_heads} equal heads; "
                f"choose {_either(tuple(fitting))} heads, or another width.",
                "n_heads",
            )
        _number(self, "dropout", 0.0, 0.9)
        if not isinstance(self.dropout_on, tuple) or any(p not in DROPOUT_PLACES for p in self.dropout_on):
            raise InputError(
                f"dropout_on={self.dropout_on!r} names a place that does not exist; "
                f"choose from {', '.join(DROPOUT_PLACES)}.",
                "dropout_on",
            )
        _flag(self, "qkv_bias", "output_bias", "final_norm", "padding_row", "padding_mask")
        if self.causal_mask is not None:
            _flag(self, "causal_mask")
        _choice(self, "score_scale", ("sqrt_d_head", "sqrt_d_model"))
        _choice(self, "norm_placement", ("pre", "post", "branch"))
        _choice(self, "norm", ("layer", "scalar"))
        _number(self, "norm_eps", 0.0, 0.1, above=True)
        _choice(self, "activation", ("relu", "leaky_relu", "gelu"))
        _choice(self, "embedding_scale", ("none", "encoder", "both"))
        _choice(self, "positions", ("sinusoid", "learned", "none"))
        _choice(self, "embedding_tables", ("two", "one"))
        two_sides = self.topology == "encoder-decoder"
        if two_sides and self.embedding_tables == "one" and self.src_vocab_size != self.tgt_vocab_size:
            raise InputError(
                f"One table cannot serve {self.src_vocab_size:,} source and {self.tgt_vocab_size:,} target "
                "tokens; choose two tables.",
                "embedding_tables",
            )
        _choice(self, "mask_fill", ("-inf", "-1e9"))
        _choice(self, "initialisation", ("xavier", "pytorch", "normal"))
        if self.embedding_std is not None:
            _number(self, "embedding_std", 0.0, 10.0, above=True)

    @property
    def d_head(self) -> int:
        """Width of one head (K)."""
        return self.d_model // self.n_heads

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of attention that the model has: cross, encoder, decoder or sequence."""
        return KINDS_OF[self.topology]

    @property
    def masks(self) -> dict[str, bool]:
        """Whether each mask is on when training begins: causal and padding."""
        causal = self.topology != "encoder-only" if self.causal_mask is None else self.causal_mask
        return {"causal": causal, "padding": self.padding_mask}

    def n_layers(self, kind: str) -> int:
        """Layers of the stack that has this kind of attention."""
        return self.n_encoder_layers if kind == "encoder" else self.n_decoder_layers


@dataclass(frozen=True, kw_only=True)
class TrainConfig(_Json):
    """What is learned, from which examples, and how the weights move."""

    task: str = "reverse"
    """What is learned: a name in `TASKS`."""
    min_letters: int = 1
    """Shortest training word."""
    max_letters: int = 12
    """Longest training word (L); words up to 2 L may be asked, but nothing longer than L is learned."""
    shift: int = 3
    """Of Caesar's cipher: how far on in the alphabet each letter is written."""
    language: str = "en"
    """In which numbers are written: en, fr or de."""
    digits: int = 4
    """Digits of the largest number."""
    to_words: bool = False
    """Whether numbers are read as digits and written as words, and not the other way round."""
    patterns: tuple[str, ...] | None = None
    """Kinds of sentences that a grammar makes; none: all that it has."""
    adjectives: int = 1
    """Most adjectives in a sentence of a grammar."""
    pairs: str | None = None
    """Digest of a person's own pairs, which the server holds as long as a run or a page needs them."""
    examples: int | None = None
    """Size of a finite training set, seen again and again in other orders; none: an endless supply."""
    pad_to: int | None = None
    """Fixed length in tokens of both sides, so that shapes stand still; none: the batch's longest."""
    tokenizer: str = "auto"
    """How text becomes tokens: characters, words, bpe, file (a tokenizer.json), or auto, as the task has it:
    words for sentences, characters otherwise."""
    tokenizer_file: str | None = None
    """Digest of that tokenizer.json, which the server holds as long as a run or a page needs it."""
    vocabulary: int | None = None
    """Most tokens of each side, special ones included; none: all words that there are, 300 for bpe."""
    min_frequency: int = 1
    """A word that training has less often becomes [UNK]."""
    batch_size: int = 64
    """Words per step."""
    steps: int = 300
    """Planned steps: the schedule's decay ends with them."""
    optimizer: str = "adamw"
    """adamw (weight decay apart from the gradient) or adam (weight decay added to it)."""
    learning_rate: float = 5e-3
    """Highest rate, reached at the end of the warm-up."""
    betas: tuple[float, ...] = (0.9, 0.98)
    """How slowly Adam's two running means forget."""
    adam_eps: float = 1e-9
    """Keeps Adam from dividing by zero."""
    weight_decay: float = 0.01
    """How strongly the optimiser pulls the weights towards zero."""
    warmup_steps: int = 50
    """Steps over which the rate rises from zero."""
    schedule: str = "linear"
    """After the warm-up: linear or cosine decay to zero with the planned steps, or constant."""
    clip: float | None = 1.0
    """Longest gradient, in Euclidean norm; none: no clipping."""
    precision: str = "float32"
    """Of a training step's products: float32, or bfloat16 (half the memory, faster on most GPUs; weights,
    norms of the gradient and whatever is looked at stay float32)."""
    cuda_graphs: bool = False
    """Whether, on one CUDA GPU, a whole step is captured once and then replayed as one graph."""
    label_smoothing: float = 0.0
    """Share of the target's probability that is spread over all tokens."""
    evaluate_every: int = 25
    """Steps between two evaluations on held-out words."""
    goal: float | None = None
    """Stop as soon as this share of all held-out words is exact; none: run all planned steps."""
    decoding: str = "greedy"
    """How outputs are written: greedy, or beam: the best of several tried beside each other."""
    beam_width: int = 4
    """How many beams."""
    length_penalty: float = 0.6
    """A beam's log-probability is divided by ((5 + length) / 6) to this power (Wu et al., 2016), so that
    longer ones are not left behind; 0: not at all, and short ones are favoured."""
    tensorboard: bool = False
    """Whether curves also go to TensorBoard, into the run's folder."""

    def __post_init__(self) -> None:
        _choice(self, "task", TASKS)
        _whole(self, "max_letters", 3, 40)
        _whole(self, "min_letters", 1, self.max_letters)
        if self.examples is not None:
            _whole(self, "examples", 1, 1_000_000)
        if self.pad_to is not None:
            least = self.max_letters + 2 if self.task in LETTER_TASKS else 4
            _whole(self, "pad_to", least, 100, "It must hold the longest word, [SOS] and [EOS].")
        _whole(self, "shift", 1, 25)
        _choice(self, "language", LANGUAGES)
        _whole(self, "digits", 2, 6)
        _flag(self, "to_words")
        if self.patterns is not None and (
            not isinstance(self.patterns, tuple)
            or not self.patterns
            or not all(isinstance(pattern, str) for pattern in self.patterns)
        ):
            raise InputError(f"patterns={self.patterns!r} are no names; choose at least one.", "patterns")
        _whole(self, "adjectives", 0, 4)
        for name in ("pairs", "tokenizer_file"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not 0 < len(value) <= 64):
                raise InputError(f"{name}={value!r} is no digest of a file.", name)
        _choice(self, "tokenizer", TOKENIZERS)
        if self.vocabulary is not None:
            _whole(self, "vocabulary", 10, 50_000)
        _whole(self, "min_frequency", 1, 1000)
        _whole(self, "batch_size", 1, 4096)
        _whole(self, "steps", 1, 1_000_000)
        _choice(self, "optimizer", ("adamw", "adam"))
        _number(self, "learning_rate", 0.0, math.inf, above=True)
        if (
            not isinstance(self.betas, tuple)
            or len(self.betas) != 2
            or not all(isinstance(b, int | float) and 0 <= b < 1 for b in self.betas)
        ):
            raise InputError(
                f"betas={self.betas!r} cannot be used; choose two numbers from 0 to below 1.", "betas"
            )
        _number(self, "adam_eps", 0.0, 1.0, above=True)
        _number(self, "weight_decay", 0.0, 10.0)
        _whole(self, "warmup_steps", 0, 1_000_000)
        _choice(self, "schedule", ("linear", "cosine", "constant"))
        if self.clip is not None:
            _number(self, "clip", 0.0, math.inf, above=True)
        _choice(self, "precision", PRECISIONS)
        _number(self, "label_smoothing", 0.0, 0.9)
        _whole(self, "evaluate_every", 1, 1_000_000)
        if self.goal is not None:
            _number(self, "goal", 0.0, 1.0, above=True)
        _choice(self, "decoding", ("greedy", "beam"))
        _whole(self, "beam_width", 1, 16)
        _number(self, "length_penalty", 0.0, 2.0)
        _flag(self, "tensorboard", "cuda_graphs")

    @property
    def steps_per_epoch(self) -> int | None:
        """Steps in which every example of the finite set is seen once; None where the supply is endless."""
        return None if self.examples is None else -(-self.examples // self.batch_size)

    @property
    def epochs(self) -> float | None:
        """How often the planned steps see the whole finite set; None where the supply is endless."""
        return None if self.steps_per_epoch is None else self.steps / self.steps_per_epoch


@dataclass(frozen=True, kw_only=True)
class RunConfig(_Json):
    """One training of one model from one seed; on a CPU, equal configurations give equal losses."""

    model: ModelConfig = field(default_factory=ModelConfig)
    """The architecture."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """The task and the training."""
    recipe: str = "default"
    """Name of the recipe or preset that these settings began as."""
    published: bool = False
    """Whether they began at that recipe's paper size and with its article's training."""
    seed: int = 0
    """Fixes the first weights, dropout and every batch."""
    device: str = "auto"
    """auto (CUDA, else MPS, else CPU), cpu, cuda or mps."""
    threads: int | None = None
    """CPU threads of an operation; none: the number that is fastest here and leaves a core to the page."""

    def __post_init__(self) -> None:
        _whole(self, "seed", 0, 2**32 - 1)
        _choice(self, "device", DEVICES)
        if self.threads is not None:
            _whole(self, "threads", 1, 256)
        _flag(self, "published")
        if not isinstance(self.recipe, str) or not 0 < len(self.recipe) <= 60:
            raise InputError("A recipe's name has 1 to 60 characters.", "recipe")

    @staticmethod
    def check_names(names: Iterable[str]) -> None:
        """Refuse what is no setting of the run, the model or the training. Raises InputError."""
        known = {f.name for group in (RunConfig, ModelConfig, TrainConfig) for f in fields(group)}
        for name in names:
            if name not in known - {"model", "train"}:
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(sorted(known))}."
                raise InputError(f"There is no setting {name!r}; {hint}", name)

    def with_changes(self, **changes: Any) -> RunConfig:
        """A copy with settings of the run, the model or the training changed, each by its plain name."""
        groups: dict[str, dict[str, Any]] = {"model": {}, "train": {}, "run": {}}
        model_names = {f.name for f in fields(ModelConfig)}
        train_names = {f.name for f in fields(TrainConfig)}
        for name, value in changes.items():
            group = "model" if name in model_names else "train" if name in train_names else "run"
            groups[group][name] = value
        return replace(
            self,
            model=replace(self.model, **groups["model"]),
            train=replace(self.train, **groups["train"]),
            **groups["run"],
        )

    def differences(self, other: RunConfig) -> dict[str, tuple[Any, Any]]:
        """Settings that differ, by plain name: (here, there)."""

        def flat(config: RunConfig) -> dict[str, Any]:
            values = config.to_dict()
            return {**values.pop("model"), **values.pop("train"), **values}

        here, there = flat(self), flat(other)
        return {name: (here[name], there[name]) for name in here if here[name] != there[name]}

    def to_json(self) -> str:
        """Versioned JSON, the form in which a configuration is kept and shared."""
        return json.dumps({"format": FORMAT, **self.to_dict()}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        """Read what `to_json` wrote.

        Raises:
            InputError: not JSON, another version, an unknown name or a value that cannot be used.
        """
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
            raise InputError(f"The configuration is not JSON ({error}).") from error
        if not isinstance(values, dict):
            raise InputError("The configuration is not a JSON object.")
        version = values.pop("format", FORMAT)
        if version != FORMAT:
            raise InputError(f"The configuration has format {version!r}; this version reads format {FORMAT}.")
        return cls.from_dict(values)
