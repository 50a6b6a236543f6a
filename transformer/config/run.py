"""All settings of one run, by their plain names, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from transformer.config.limits import Limit, OneOf, Settings, Whole, did_you_mean
from transformer.config.model import ModelConfig
from transformer.config.training import TrainConfig
from transformer.errors import InputError

FORMAT = 1
"""Version of the JSON that `RunConfig.to_json` writes."""
DEVICES = ("auto", "cpu", "cuda", "mps")
_OF_BATCHES = frozenset(
    "seed task max_letters min_letters batch_size examples shift patterns adjectives pairs tokenizer "
    "tokenizer_file vocabulary min_frequency".split()
)
"""Settings on which the examples in the batches of a run depend."""


@dataclass(frozen=True, kw_only=True)
class RunConfig(Settings):
    """One training of one model from one seed; on the same CPU, equal configurations give equal losses."""

    model: ModelConfig = field(default_factory=ModelConfig)
    """The architecture."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """The task and the training."""
    recipe: str = "default"
    """Name of the recipe or preset that these settings began as."""
    published: bool = False
    """Whether these settings began with that recipe's published size and training."""
    seed: Annotated[int, Whole(0, 2**32 - 1)] = 0
    """Fixes the initial weights, dropout and every batch."""
    device: Annotated[str, OneOf(DEVICES)] = "auto"
    """auto (CUDA, else MPS, else CPU), cpu, cuda or mps."""
    threads: Annotated[int | None, Whole(1, 256)] = None
    """CPU threads of an operation; None: one, or as many as PyTorch's launcher sets for each process. Another
    number may change the last digits of the losses."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.recipe, str) or not 0 < len(self.recipe) <= 60:
            raise InputError("A recipe's name has 1 to 60 characters.", "recipe")

    @staticmethod
    def limit_of(name: str) -> Limit:
        """The limit of a setting of the run, the model or the training, by its plain name."""
        limits = RunConfig.limits | ModelConfig.limits | TrainConfig.limits
        return limits[name][0]

    @staticmethod
    def check_names(names: Iterable[str]) -> None:
        """Raise an InputError for a name that is not a setting of the run, the model or the training."""
        all_names = set(RunConfig().flat())
        for name in names:
            if name not in all_names:
                hint = did_you_mean(name, all_names) or f"choose from {', '.join(sorted(all_names))}."
                raise InputError(f"There is no setting {name!r}; {hint}", name)

    def flat(self) -> dict[str, Any]:
        """Every setting of the run, the model and the training by its plain name."""
        values = self.to_dict()
        return {**values.pop("model"), **values.pop("train"), **values}

    def with_changes(self, **changes: Any) -> RunConfig:
        """A copy with settings of the run, the model or the training changed, each by its plain name.

        Raises:
            InputError: a value that cannot be used.
        """

        def taken(kind: type[ModelConfig] | type[TrainConfig]) -> dict[str, Any]:
            return {one.name: changes.pop(one.name) for one in fields(kind) if one.name in changes}

        model, train = taken(ModelConfig), taken(TrainConfig)
        return replace(
            self, model=replace(self.model, **model), train=replace(self.train, **train), **changes
        )

    def changed(self, name: str, value: Any) -> RunConfig:
        """A copy with one setting changed; a new `d_model` scales `d_ff` by the same factor, rounded down.

        Raises:
            InputError: a value that cannot be used.
        """
        d_ff = {}
        if name == "d_model" and isinstance(value, int):
            d_ff = {"d_ff": self.model.d_ff * value // self.model.d_model}
        return self.with_changes(**{name: value}, **d_ff)

    def sees_batches_of(self, other: RunConfig) -> bool:
        """Whether runs with these settings and with `other` train on the same examples, batch by batch."""
        return not _OF_BATCHES & {*self.differences(other)}

    def differences(self, other: RunConfig) -> dict[str, tuple[Any, Any]]:
        """Settings that differ, by plain name: (here, there)."""
        here, there = self.flat(), other.flat()
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
