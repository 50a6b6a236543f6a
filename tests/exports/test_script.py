"""The exported script is the experiment: the same model, the same training, and nothing but PyTorch."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
import torch

from transformer.config import DROPOUT_PLACES, ModelConfig, RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.exports.script import EXPERIMENT, script, script_problem
from transformer.model.layers import Dropout
from transformer.recipes import RECIPES
from transformer.recording.scorer import Scorer
from transformer.tasks import completed
from transformer.tasks.letters import is_held_out
from transformer.training.evaluation import evaluate
from transformer.training.loop import train
from transformer.training.state import TrainState

BASE = RunConfig(
    model=ModelConfig(n_encoder_layers=1, n_decoder_layers=2, n_heads=3, d_model=12, d_ff=10),
    train=TrainConfig(max_letters=5, batch_size=6, steps=9, warmup_steps=3, evaluate_every=1000),
    device="cpu",
)
TOPOLOGIES = ["encoder-decoder", "encoder-only", "decoder-only"]
REFUSED = {
    "task": "copy",
    "tokenizer": "bpe",
    "pad_to": 14,
    "precision": "bfloat16",
    "decoding": "beam",
    "tensorboard": True,
}
ELSEWHERE = {  # of speed alone, or of what is refused
    *("src_vocab_size", "tgt_vocab_size", "cuda_graphs", "published", "model", "train"),
    *("shift", "language", "digits", "to_words", "patterns", "adjectives", "pairs"),
    *("tokenizer_file", "vocabulary", "min_frequency", "beam_width", "length_penalty"),
}
# Whatever changes what the model computes or how it learns, one setting at a time, and then several together.
FLIPS = {
    "mask_fill": ["-1e9"],
    "n_encoder_layers": [3],
    "n_heads": [2],
    "d_model": [15],
    "d_ff": [7],
    "qkv_bias": [False],
    "output_bias": [False],
    "score_scale": ["sqrt_d_model"],
    "norm_placement": ["post", "branch"],
    "final_norm": [False],
    "norm": ["scalar"],
    "norm_eps": [0.1],
    "activation": ["leaky_relu", "gelu"],
    "embedding_scale": ["none", "encoder"],
    "positions": ["learned", "none"],
    "embedding_tables": ["one"],
    "padding_row": [True],
    "batch_size": [3],
    "optimizer": ["adam"],
    "learning_rate": [0.02],
    "betas": [(0.5, 0.6)],
    "adam_eps": [0.1],
    "weight_decay": [2.0],
    "schedule": ["cosine", "constant"],
    "clip": [None, 0.05],
    "label_smoothing": [0.3],
}
CASES = [
    *({name: value} for name, values in FLIPS.items() for value in values),
    *(
        {"topology": topology, "causal_mask": causal, "padding_mask": padding}
        for topology in TOPOLOGIES
        for causal in (True, False)
        for padding in (True, False)
    ),
    *(
        {
            "topology": topology,
            "n_decoder_layers": 3,
            "embedding_tables": "one",
            "padding_row": True,
            "embedding_scale": "encoder",
            "positions": "learned",
            "norm": "scalar",
            "norm_placement": "post",
            "final_norm": False,
            "optimizer": "adam",
            "weight_decay": 0.5,
            "warmup_steps": 0,
        }
        for topology in TOPOLOGIES
    ),
]
STARTS = [
    {},
    {"initialisation": "xavier", "embedding_std": None},
    {"initialisation": "normal", "embedding_std": 0.3, "padding_row": True},
    {"initialisation": "xavier", "topology": "encoder-only", "norm": "scalar", "qkv_bias": False},
    {"topology": "decoder-only", "padding_row": True, "positions": "learned"},
    {"embedding_tables": "one", "embedding_std": None, "padding_row": True},
]


def label(changes):
    return ",".join(f"{name}={value}" for name, value in changes.items())[:60] or "default"


def run_of(**changes):
    """The names of a script, and our own state of the same configuration."""
    config = BASE.with_changes(**changes)
    return names_in(script(config)), TrainState.begin(config)


def names_in(text):
    names = {"__name__": "experiment"}
    exec(compile(text, "experiment.py", "exec"), names)
    return names


def twin(names, state):
    """The script's model with our weights."""
    model = names["Transformer"]()
    model.load_state_dict(state.model.state_dict())  # every name is there, and no other
    return model


def table_of(model):
    """The table of the stack that writes."""
    return model.tgt_embedding if hasattr(model, "tgt_embedding") else model.src_embedding


def test_a_script_is_the_program_with_the_settings_of_a_run_at_its_top():
    program = EXPERIMENT.read_text(encoding="utf-8")
    top, rest = program.split("# ---- Words ----")
    assert script(RunConfig()) == program
    there = set(re.findall(r"^([A-Z_]+) = ", top, re.MULTILINE))
    known = {f.name for group in (RunConfig, ModelConfig, TrainConfig) for f in fields(group)}
    assert {name.lower() for name in there} == known - set(REFUSED) - ELSEWHERE
    for recipe in RECIPES.values():
        for config in (recipe.small, recipe.published):
            config = completed(config.with_changes(device="cpu", threads=2, betas=(np.float64(0.5), 0)))
            expected = {**vars(config), **vars(config.train), **vars(config.model)}
            expected["causal_mask"] = config.model.masks["causal"]
            text = script(config)
            names = names_in(text)
            assert text.endswith(rest)
            for name in there:
                value = expected[name.lower()]
                assert names[name] == (list(value) if isinstance(value, tuple) else value), name


def test_free_text_stays_in_its_quotes():
    text = script(RunConfig(recipe='"\nimport os  # ${seed} é\\'))
    assert names_in(text)["RECIPE"] == '"\nimport os  # ${seed} é\\'
    assert text.isascii()


@pytest.mark.parametrize(("name", "value"), REFUSED.items())
def test_what_a_script_cannot_do_is_refused(name, value):
    config = RunConfig().with_changes(**{name: value})
    with pytest.raises(InputError, match="; choose ") as refused:
        script(config)
    assert script_problem(config) == str(refused.value)
    assert script_problem(RunConfig()) is None


@pytest.mark.parametrize("changes", CASES, ids=label)
def test_from_our_weights_and_words_it_computes_and_learns_as_we_do(changes, fill):
    names, state = run_of(**changes)
    n_steps = state.config.train.steps - 1  # the last would evaluate
    words = [state.task.words(state.config.seed, k) for k in range(n_steps)]
    model = twin(names, state)
    steps, theirs = zip(*names["train"](model, words), strict=True)
    assert steps == tuple(range(1, n_steps + 1))
    ours = [loss for report in itertools.islice(train(state), n_steps) for loss in report.losses]
    assert theirs == pytest.approx(ours, rel=2e-4, abs=2e-5)
    if state.config.model.padding_row:
        assert not table_of(model).weight[0].any()

    batch = state.task.encode(["abcde", "a", "zz", "helo"])
    src, tgt, labels = state.to_device(batch)
    two = state.config.model.topology == "encoder-decoder"
    expected = (src, tgt, labels) if two else (src, labels)
    *given, made_labels = names["as_tensors"](["abcde", "a", "zz", "helo"])
    made = [one for one in (*given, made_labels) if one is not None]
    assert all(torch.equal(one, other) for one, other in zip(made, expected, strict=True))
    fill(state.model)  # logits that are far from each other
    model = twin(names, state)
    model.double(), state.model.double()  # so that only a difference of meaning is seen
    ours = state.model.eval()(src, tgt)
    torch.testing.assert_close(model.eval()(*given), ours, rtol=0.0, atol=1e-5)
    assert ours.std() > 0.01


@pytest.mark.parametrize("decay", ["linear", "cosine", "constant"])
@pytest.mark.parametrize("warmup", [0, 1, 50, 299, 300, 1000])
def test_the_rate_is_ours_at_every_step(decay, warmup):
    names, state = run_of(schedule=decay, warmup_steps=warmup, steps=300, learning_rate=0.007)
    theirs = [names["learning_rate"](step) for step in range(1, 301)]
    assert theirs == pytest.approx([state.stretch.rate(step) for step in range(1, 301)], rel=1e-12)


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
def test_dropout_acts_where_ours_does(places, placement, topology, fill, monkeypatch):
    names, state = run_of(dropout=0.3, dropout_on=places, norm_placement=placement, topology=topology)
    fill(state.model)
    model = twin(names, state)
    shares = {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}
    assert shares - {0.0} == ({0.3} if places else set())
    # Both made to do the same visible thing wherever they act.
    monkeypatch.setattr(Dropout, "forward", lambda self, x: x * 1.7 - 0.1 if self.active else x)
    monkeypatch.setattr(
        torch.nn.Dropout, "forward", lambda self, x: x * 1.7 - 0.1 if self.training and self.p else x
    )
    src, tgt, _ = state.to_device(
        state.task.encode(["abcde", "zzyxw"])
    )  # ours leaves padding out in training
    *given, _ = names["as_tensors"](["abcde", "zzyxw"])
    theirs = model.train()(*given)
    torch.testing.assert_close(theirs, state.model.train()(src, tgt), rtol=0.0, atol=1e-5)
    names["write"](model, ["abc"])
    assert torch.allclose(theirs, model(*given)) == (not places)  # what is measured is measured without it
    next(names["train"](model, [["abc"]]))
    assert model.training


@pytest.mark.parametrize("changes", STARTS, ids=label)
def test_first_weights_are_drawn_as_ours_are(changes):
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


def test_words_are_drawn_as_ours_are():
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


def test_a_finite_set_is_seen_once_in_each_epoch_in_ever_other_orders():
    names, _ = run_of(examples=14, batch_size=6)
    batches = list(itertools.islice(names["draw_batches"](names["random"].Random(1)), 9))
    assert [len(words) for words in batches] == [6, 6, 2] * 3
    epochs = [sum(batches[i : i + 3], []) for i in (0, 3, 6)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])
    assert len(set(map(tuple, epochs))) == 3


@pytest.mark.parametrize("padding", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_its_measures_are_ours_for_every_topology_and_mask(topology, causal, padding):
    """Where rows look ahead, the right letters of the answer would be told: it has to write by itself."""
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
    """What a script prints, started as a student would, with nothing of ours within reach."""
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


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_it_trains_and_says_what_was_learned(tmp_path, topology):
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


def test_it_stops_at_the_goal_and_evaluates_when_it_is_told(tmp_path):
    config = SMALL.with_changes(goal=1e-9, evaluate_every=7, learning_rate=0.01, dropout=0.1)
    steps = [int(step) for step in re.findall(r"^step +(\d+) ", printed(config, tmp_path), re.M)]
    assert steps == list(range(7, steps[-1] + 1, 7))
    assert steps[-1] < 240


def test_it_needs_torch_alone():
    tree = ast.parse(EXPERIMENT.read_text(encoding="utf-8"))
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported - set(sys.stdlib_module_names) == {"torch"}
