"""Every training setting takes effect: another value changes what the setting governs."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from itertools import islice

import pytest
import torch

from transformer.config import TrainConfig
from transformer.decoding.spelling import spell
from transformer.errors import InputError
from transformer.runs.run import Run
from transformer.training.evaluation import evaluate
from transformer.training.loop import train
from transformer.training.state import TrainState, captures

# Setting: (what shows its effect, its other values).
CASES = {
    "task": ("losses", ["copy", "sort", "dates", "caesar", "en-fr", "en-it", "zh-en"]),
    "shift": ("losses", [5]),
    "patterns": ("losses", [("svo",), ("svo", "negation")]),
    "adjectives": ("losses", [0, 2]),
    "pairs": ("refused", ["0123456789ab"]),
    "min_letters": ("losses", [3]),
    "max_letters": ("losses", [4]),
    "examples": ("losses", [4, 100]),
    "tokenizer": ("losses", ["characters", "bpe"]),
    "tokenizer_file": ("refused", ["0123456789ab"]),
    "vocabulary": ("losses", [30]),
    "min_frequency": ("losses", [200]),
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
    "precision": ("losses", ["bfloat16"]),
    "cuda_graphs": ("graphs", [True]),
    "label_smoothing": ("losses", [0.1]),
    "evaluate_every": ("evaluations", [3]),
    "goal": ("length", [1e-9]),
    "decoding": ("search", ["beam"]),
    "beam_width": ("search", [2]),
    "length_penalty": ("search", [0.0]),
    "tensorboard": ("folder", [True]),
}
PREREQUISITES = {
    "shift": {"task": "caesar"},
    **dict.fromkeys(
        ("patterns", "adjectives", "tokenizer", "vocabulary", "min_frequency"), {"task": "en-fr"}
    ),
    "pairs": {"task": "pairs"},
    "tokenizer_file": {"tokenizer": "file", "task": "en-fr"},
    **dict.fromkeys(("beam_width", "length_penalty"), {"decoding": "beam"}),
}
"""Changes without which a setting has no effect."""
LATER = ("evaluate_every", "goal")
"""Settings whose effect shows only in evaluations; other cases skip evaluations to save time."""
FLIPS = [(name, value) for name, (_, values) in CASES.items() for value in values]


@cache
def first_losses(config):
    """Return the losses of all steps but the last, which includes an evaluation."""
    return [report.losses[0] for report in islice(train(TrainState.begin(config)), 7)]


@pytest.mark.parametrize("name", [field.name for field in fields(TrainConfig)])
def test_every_setting_has_a_case_here(name, tiny):
    assert name in CASES, "say in CASES what shows the new setting"
    assert getattr(tiny().train, name) not in CASES[name][1]


@pytest.mark.parametrize(("name", "value"), FLIPS, ids=str)
def test_a_setting_changes_what_it_governs(name, value, tiny, monkeypatch, every_right):
    shown_by = CASES[name][0]
    before = tiny(adam_eps=1e-5, evaluate_every=4 if name in LATER else 99).with_changes(
        **PREREQUISITES.get(name, {})
    )
    after = before.with_changes(**{name: value})
    if shown_by == "losses":
        ours, other = first_losses(before), first_losses(after)
        assert max(abs(a - b) for a, b in zip(ours, other, strict=True)) > 1e-6
    elif shown_by == "refused":  # uploads are found by digest, and no upload has this one
        for config, message in ((before, "There (is|are) no .* yet"), (after, "no longer")):
            with pytest.raises(InputError, match=message):
                TrainState.begin(config)
    elif shown_by == "folder":
        (run := Run(before)).close()
        run.join()
        with pytest.raises(InputError, match="^Logging to TensorBoard needs a file"):
            Run(after)
    elif shown_by == "graphs":
        gpu, alone = torch.device("cuda"), None
        assert [captures(config.train, gpu, alone) for config in (before, after)] == [False, True]
    elif shown_by == "search":
        found = []

        def noted(*arguments, decoding, **settings):
            found.append(decoding)
            return spell(*arguments, decoding=decoding, **settings)

        monkeypatch.setattr("transformer.training.evaluation.spell", noted)
        for config in (before, after):
            evaluate(TrainState.begin(config), ["cat", "ox"], ["dog"])
        ours, again, other, once_more = found
        assert ours == again != other == once_more
    else:
        if shown_by == "length":
            every_right()
        found = [
            [report.step for report in train(TrainState.begin(config)) if report.evaluation]
            for config in (before, after)
        ]
        assert found == {"evaluations": [[4, 8], [3, 6, 8]], "length": [[4, 8], [4]]}[shown_by]
