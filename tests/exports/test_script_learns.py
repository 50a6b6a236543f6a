"""The exported script draws data, applies dropout, measures and learns as the app does."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch

from tests.exports.conftest import TOPOLOGIES, label, run_of, twin
from transformer.config import DROPOUT_PLACES, ModelConfig, RunConfig, TrainConfig
from transformer.exports.script import EXPERIMENT, script
from transformer.model.layers import Dropout
from transformer.recording.scorer import Scorer
from transformer.tasks.letters import is_held_out
from transformer.training.evaluation import evaluate
from transformer.training.loop import train

STARTS = [
    {},
    {"initialisation": "xavier", "embedding_std": None},
    {"initialisation": "normal", "embedding_std": 0.3, "padding_row": True},
    {"initialisation": "xavier", "topology": "encoder-only", "norm": "scalar", "qkv_bias": False},
    {"topology": "decoder-only", "padding_row": True, "positions": "learned"},
    {"embedding_tables": "one", "embedding_std": None, "padding_row": True},
]


@pytest.mark.parametrize("decay", ["linear", "cosine", "constant"])
@pytest.mark.parametrize("warmup", [0, 1, 50, 299, 300, 1000])
def test_the_learning_rate_is_that_of_the_app_at_every_step(decay, warmup):
    names, state = run_of(schedule=decay, warmup_steps=warmup, steps=300, learning_rate=0.007)
    theirs = [names["learning_rate"](step) for step in range(1, 301)]
    assert theirs == pytest.approx([state.phase.rate(step) for step in range(1, 301)], rel=1e-12)


@pytest.mark.parametrize(
    ("placement", "topology"),
    [
        *((placement, TOPOLOGIES[0]) for placement in ("pre", "post", "branch")),
        *(("pre", t) for t in TOPOLOGIES[1:]),
    ],
)
@pytest.mark.parametrize(
    "places", [(), *((place,) for place in DROPOUT_PLACES), ("residual", "encoder_attention"), DROPOUT_PLACES]
)
def test_dropout_acts_where_it_does_in_the_app(places, placement, topology, fill, monkeypatch):
    names, state = run_of(dropout=0.3, dropout_on=places, norm_placement=placement, topology=topology)
    fill(state.model)
    model = twin(names, state)
    shares = {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}
    assert shares - {0.0} == ({0.3} if places else set())
    # Replace both dropouts by the same deterministic function.
    monkeypatch.setattr(Dropout, "forward", lambda self, x: x * 1.7 - 0.1 if self.active else x)
    monkeypatch.setattr(
        torch.nn.Dropout, "forward", lambda self, x: x * 1.7 - 0.1 if self.training and self.p else x
    )
    src, tgt, _ = state.to_device(
        state.task.encode(["abcde", "zzyxw"])
    )  # the app's model skips padding in training
    *given, _ = names["as_tensors"](["abcde", "zzyxw"])
    theirs = model.train()(*given)
    torch.testing.assert_close(theirs, state.model.train()(src, tgt), rtol=0.0, atol=1e-5)
    names["write"](model, ["abc"])
    assert torch.allclose(theirs, model(*given)) == (not places)  # measured without dropout
    next(names["train"](model, [["abc"]]))
    assert model.training


@pytest.mark.parametrize("changes", STARTS, ids=label)
def test_initial_weights_are_drawn_as_in_the_app(changes):
    names, state = run_of(d_model=60, d_ff=90, **changes)
    torch.manual_seed(0)
    theirs, ours = names["Transformer"]().state_dict(), state.model.state_dict()
    assert theirs.keys() == ours.keys()
    for name, weights in ours.items():
        assert (theirs[name] == 0).sum() == (weights == 0).sum(), name
        assert float(theirs[name].mean()) == pytest.approx(float(weights.mean()), abs=0.15), name
        if weights.numel() >= 30:
            assert float(theirs[name].std()) == pytest.approx(float(weights.std()), rel=0.3), name
            assert float(theirs[name].abs().max()) == pytest.approx(float(weights.abs().max()), rel=0.6), name


def test_words_are_drawn_as_in_the_app():
    names, _ = run_of(min_letters=2, max_letters=6, batch_size=4000)
    rng = names["random"].Random(0)
    trained = next(names["draw_batches"](rng))
    asked = [names["draw_word"](rng, 3, held_out=True) for _ in range(500)]
    assert not any(map(is_held_out, trained))
    assert all(map(is_held_out, asked))
    assert {len(word) for word in asked} == {3, 4, 5, 6}
    assert min(Counter(map(len, trained)).values()) > 720
    assert max(Counter(map(len, trained)).values()) < 880
    assert set("".join(trained)) == set("abcdefghijklmnopqrstuvwxyz")
    assert all(names["is_held_out"](word) == is_held_out(word) for word in [*trained, *asked, "a", "zz"])


def test_each_epoch_has_every_example_of_a_finite_set_once_in_a_new_order():
    names, _ = run_of(examples=14, batch_size=6)
    batches = list(itertools.islice(names["draw_batches"](names["random"].Random(1)), 9))
    assert [len(words) for words in batches] == [6, 6, 2] * 3
    epochs = [sum(batches[i : i + 3], []) for i in (0, 3, 6)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])
    assert len(set(map(tuple, epochs))) == 3


@pytest.mark.parametrize("padding", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_accuracy_and_mirror_scores_are_those_of_the_app_for_every_topology_and_mask(
    topology, causal, padding
):
    """Rows that look ahead would read the right letters, so accuracy must be free-running."""
    names, state = run_of(
        topology=topology,
        causal_mask=causal,
        padding_mask=padding,
        d_model=24,
        max_letters=3,
        batch_size=32,
        steps=90,
        learning_rate=0.01,
    )
    for _ in train(state):
        pass
    words = [a + b for a in "abcdef" for b in "abcdef"] + [*"abcdefgh", "abc", "cab"]
    ours, model = evaluate(state, words), twin(names, state)
    assert names["exact_share"](model, words) == ours.exact
    if topology != "encoder-only" and not causal:
        assert ours.token_accuracy > ours.exact + 0.2
    else:
        assert 0 < ours.exact <= 1
    scored = [word for word in state.task.held_out() if len(word) >= 3][:64]
    kind = state.config.model.kinds[0]
    measured = Scorer(state.task).scores(state.model)
    expected = [measured[site]["mirror"] for site in measured if kind != "cross" or "cross" in site]
    np.testing.assert_allclose(names["mirror_scores"](model, scored), expected, atol=1e-5)


SMALL = RunConfig(
    model=ModelConfig(n_encoder_layers=2, n_decoder_layers=2, n_heads=2, d_model=32, d_ff=64),
    train=TrainConfig(max_letters=4, batch_size=64, steps=250, warmup_steps=30, evaluate_every=50),
    device="cpu",
)


def printed(config, folder):
    """Run a script as a student would, without access to the app; return its output."""
    (folder / "experiment.py").write_text(script(config), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "experiment.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "topology", [TOPOLOGIES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in TOPOLOGIES[1:])]
)
def test_a_script_trains_and_prints_what_was_learned(tmp_path, topology):
    out = printed(SMALL.with_changes(topology=topology), tmp_path)
    steps = re.findall(
        r"^step +(\d+)   loss (\d\.\d{4})   exact +([\d.]+)% of 200 held-out words$", out, re.M
    )
    assert [int(step) for step, _, _ in steps] == [50, 100, 150, 200, 250]
    assert float(steps[-1][1]) < float(steps[0][1]) / 2
    assert float(re.search(r"^([\d.]+)% of 1,000 words that were never trained on", out, re.M)[1]) > 50
    word = re.search(r"while it writes ([a-z]+) backwards", out)[1]
    assert is_held_out(word)
    columns, *rows = (line.split() for line in out.split("(rows; columns are read):\n\n")[1].splitlines())
    answer = [*reversed(word), "[EOS]"]
    asked = ["[SOS]", *word, "[EOS]"]
    assert columns == (["[SOS]", *word, "[SEP]", *answer[:-1]] if topology == "decoder-only" else asked)
    assert [row[0] for row in rows] == answer
    for row in rows:
        assert len(row) == 1 + len(columns)
        assert sum(float(weight) for weight in row[1:] if weight != ".") == pytest.approx(100, abs=4)


def test_a_script_stops_at_the_goal_and_evaluates_at_the_configured_interval(tmp_path):
    config = SMALL.with_changes(goal=1e-9, evaluate_every=7, learning_rate=0.01, dropout=0.1)
    steps = [int(step) for step in re.findall(r"^step +(\d+) ", printed(config, tmp_path), re.M)]
    assert steps == list(range(7, steps[-1] + 1, 7))
    assert steps[-1] < 240


def test_a_script_imports_only_torch_and_the_standard_library():
    tree = ast.parse(EXPERIMENT.read_text(encoding="utf-8"))
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported - set(sys.stdlib_module_names) == {"torch"}
