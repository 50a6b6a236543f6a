"""Every setting of the training is handed on: flipped to another value, it changes what it governs."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import islice
from types import SimpleNamespace

import pytest

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.training.loop import train
from transformer.training.state import TrainState

# Setting: what shows it, its other values.
CASES = {
    "task": ("refused", ["copy", "sort", "dates", "numbers", "caesar", "en-fr", "en-it", "zh-en", "pairs"]),
    "min_letters": ("losses", [3]),
    "max_letters": ("losses", [4]),
    "examples": ("losses", [4, 100]),
    "pad_to": ("shapes", [20]),
    "tokenizer": ("refused", ["words", "bpe", "file"]),
    "batch_size": ("losses", [7]),
    "steps": ("losses", [9]),
    "optimizer": ("losses", ["adam"]),
    "learning_rate": ("losses", [1e-3]),
    "betas": ("losses", [(0.5, 0.98), (0.9, 0.5)]),
    "adam_eps": ("losses", [1e-2]),
    "weight_decay": ("losses", [0.5]),
    "warmup_steps": ("losses", [5]),
    "schedule": ("losses", ["cosine", "constant"]),
    "clip": ("losses", [None, 0.1]),
    "label_smoothing": ("losses", [0.1]),
    "evaluate_every": ("evaluations", [3]),
    "goal": ("length", [1e-9]),
    "decoding": ("refused", ["beam"]),
    "tensorboard": ("refused", [True]),
}
LATER = ("evaluate_every", "goal")
"""Settings that show only where the model is evaluated; for the others, that time is saved."""
FLIPS = [(name, value) for name, (_, values) in CASES.items() for value in values]


def first_losses(state):
    """Of all steps but the last, with which an evaluation comes."""
    return [report.losses[0] for report in islice(train(state), 7)]


@pytest.mark.parametrize("name", [field.name for field in fields(TrainConfig)])
def test_every_setting_has_a_case_here(name, tiny):
    assert name in CASES, "say in CASES what shows the new setting"
    assert getattr(tiny().train, name) not in CASES[name][1]


@pytest.mark.parametrize(("name", "value"), FLIPS, ids=str)
def test_a_setting_changes_what_it_governs(name, value, tiny, monkeypatch):
    shown_by, before = CASES[name][0], tiny(adam_eps=1e-5, evaluate_every=4 if name in LATER else 99)
    if shown_by == "refused":
        with pytest.raises(InputError, match="is not built yet; "):
            replace(before.train, **{name: value})
        return
    after = before.with_changes(**{name: value})
    states = [TrainState.begin(config) for config in (before, after)]
    if shown_by == "losses":
        ours, other = (first_losses(state) for state in states)
        assert max(abs(a - b) for a, b in zip(ours, other, strict=True)) > 1e-6
    elif shown_by == "shapes":
        shapes = [{state.task.batch(0, k).src.shape[1] for k in range(5)} for state in states]
        assert shapes[0] != shapes[1] == {20}
        ours, other = (first_losses(state) for state in states)
        assert ours == pytest.approx(other, abs=1e-5)  # padding changes no loss
    elif shown_by == "evaluations":
        found = [[report.step for report in train(state) if report.evaluation] for state in states]
        assert found == [[4, 8], [3, 6, 8]]
    else:

        def every_right(model, task, words, *, losses=False):
            return SimpleNamespace(exact=[True] * len(words), loss=0.0)

        monkeypatch.setattr("transformer.training.evaluation.spell", every_right)
        assert [len(list(train(state))) for state in states] == [8, 4]
