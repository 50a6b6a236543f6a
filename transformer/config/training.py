"""Settings of the training: the task, its examples, and the optimisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from transformer.config.limits import Number, OneOf, Settings, Whole
from transformer.config.tasks import TASKS
from transformer.errors import InputError

TOKENIZERS = ("auto", "characters", "words", "bpe", "file")
"""How text becomes tokens."""
PRECISIONS = ("float32", "bfloat16")
MOST_STEPS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Settings):
    """The task, its examples, and the optimisation."""

    task: Annotated[str, OneOf(TASKS)] = "reverse"
    """The task: a name in `TASKS`."""
    min_letters: int = 1
    """Letters of the shortest training word; in the task `repeat` at least 3, and half of `max_letters`."""
    max_letters: Annotated[int, Whole(3, 40)] = 12
    """Letters of the longest training word (L); words of up to 2 L may be asked."""
    shift: Annotated[int, Whole(1, 25)] = 3
    """Caesar cipher: number of places by which each letter moves in the alphabet."""
    patterns: tuple[str, ...] | None = None
    """Kinds of sentences that a grammar makes; None: all kinds."""
    adjectives: Annotated[int, Whole(0, 4)] = 1
    """Most adjectives in a sentence of a grammar."""
    pairs: str | None = None
    """Digest of the user's own pairs, which the server holds as long as a run or a page needs them."""
    examples: Annotated[int | None, Whole(1, 1_000_000)] = None
    """Size of a finite training set, repeated in a new order each epoch; None: an endless supply. No effect
    with the user's own pairs: these are a finite set, of all that are not held out."""
    tokenizer: Annotated[str, OneOf(TOKENIZERS)] = "auto"
    """How text becomes tokens: characters, words, bpe, file (a tokenizer.json), or auto: words for
    sentences, characters for words and dates, and for the user's own pairs whichever measurements favour."""
    tokenizer_file: str | None = None
    """Digest of that tokenizer.json, which the server holds as long as a run or a page needs it."""
    vocabulary: Annotated[int | None, Whole(10, 50_000)] = None
    """Most tokens of each side, special ones included; None: all, but 300 for bpe, which has a token for each
    character in any case. No effect in tasks on letters."""
    min_frequency: Annotated[int, Whole(1, 1000)] = 1
    """A word, or a character where these are tokens, that occurs less often in the training data (in a sample
    of an endless supply) becomes [UNK]. No effect in tasks on letters, or with bpe or file."""
    batch_size: Annotated[int, Whole(1, 4096)] = 64
    """Examples per step; the last step of an epoch may have fewer."""
    steps: Annotated[int, Whole(1, MOST_STEPS)] = 300
    """Planned steps: the schedule's decay ends with them."""
    optimizer: Annotated[str, OneOf(("adamw", "adam"))] = "adamw"
    """adamw (weight decay apart from the gradient) or adam (weight decay added to it)."""
    learning_rate: Annotated[float, Number(0.0, above=True)] = 5e-3
    """Highest rate, reached at the end of the warm-up."""
    betas: tuple[float, ...] = (0.9, 0.98)
    """The decay rates of Adam's two running means."""
    adam_eps: Annotated[float, Number(0.0, 1.0, above=True)] = 1e-9
    """Keeps Adam from dividing by zero."""
    weight_decay: Annotated[float, Number(0.0, 10.0)] = 0.01
    """The weight decay of the optimiser."""
    warmup_steps: Annotated[int, Whole(0, MOST_STEPS)] = 50
    """Steps over which the rate rises from zero."""
    schedule: Annotated[str, OneOf(("linear", "cosine", "constant"))] = "linear"
    """After the warm-up: linear or cosine decay to nearly zero at the last planned step, or constant."""
    clip: Annotated[float | None, Number(0.0, above=True)] = 1.0
    """Largest Euclidean norm of the gradient; None: no clipping."""
    precision: Annotated[str, OneOf(PRECISIONS)] = "float32"
    """Of a training step's products: float32, or bfloat16 (half the memory for their results, faster on most
    GPUs; weights, gradient norms, evaluations and passes for the recording stay float32)."""
    cuda_graphs: bool = False
    """Whether, on one CUDA GPU, a whole step is captured once for each shape of a batch, and then replayed as
    one graph."""
    label_smoothing: Annotated[float, Number(0.0, 0.9)] = 0.0
    """Share of the target's probability that is spread over all tokens."""
    evaluate_every: Annotated[int, Whole(1, MOST_STEPS)] = 25
    """Steps between two evaluations on held-out words; the last planned step has one too."""
    goal: Annotated[float | None, Number(0.0, 1.0, above=True)] = None
    """Stop at the first evaluation in which this share of all held-out words is exact; None: run all planned
    steps."""
    decoding: Annotated[str, OneOf(("greedy", "beam"))] = "greedy"
    """The decoding of outputs: greedy, or beam search."""
    beam_width: Annotated[int, Whole(1, 16)] = 4
    """Number of beams of a beam search."""
    length_penalty: Annotated[float, Number(0.0, 2.0)] = 0.6
    """A beam's log-probability is divided by ((5 + length) / 6) to this power (Wu et al., 2016), so that
    longer beams can win; 0: no penalty, which favours short beams."""
    tensorboard: bool = False
    """Whether curves also go to TensorBoard, into a folder beside the run's file."""

    def __post_init__(self) -> None:
        super().__post_init__()
        Whole(1, self.max_letters).check("min_letters", self.min_letters)
        if self.patterns is not None and (
            not isinstance(self.patterns, tuple)
            or not self.patterns
            or not all(isinstance(pattern, str) for pattern in self.patterns)
        ):
            raise InputError(
                f"patterns={self.patterns!r} is not a list of names; choose at least one.", "patterns"
            )
        for name in ("pairs", "tokenizer_file"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not 0 < len(value) <= 64):
                raise InputError(f"{name}={value!r} is not the digest of a file.", name)
        if (
            not isinstance(self.betas, tuple)
            or len(self.betas) != 2
            or not all(isinstance(b, int | float) and 0 <= b < 1 for b in self.betas)
        ):
            raise InputError(
                f"betas={self.betas!r} cannot be used; choose two numbers from 0 to below 1.", "betas"
            )

    @property
    def steps_per_epoch(self) -> int | None:
        """Steps in which each of `examples` is seen once; None if that setting is."""
        return None if self.examples is None else -(-self.examples // self.batch_size)

    @property
    def epochs(self) -> float | None:
        """How often the planned steps see all `examples`; None if that setting is."""
        return None if self.steps_per_epoch is None else self.steps / self.steps_per_epoch
