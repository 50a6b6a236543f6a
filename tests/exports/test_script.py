"""The exported script is the experiment: the same model, the same training, and nothing but PyTorch."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections import Counter
from dataclasses import fields

import pytest
import torch

from transformer.config import DROPOUT_PLACES, ModelConfig, RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.exports.script import script, script_problem
from transformer.insight.scores import head_scores
from transformer.model.layers import Dropout
from transformer.recording.recorder import Scorer
from transformer.recording.tape import record
from transformer.tasks.letters import is_held_out
from transformer.training.evaluation import evaluate
from transformer.training.loop import train
from transformer.training.state import TrainState

BASE = RunConfig(
    model=ModelConfig(n_encoder_layers=1, n_decoder_layers=2, n_heads=3, d_model=12, d_ff=10),
    train=TrainConfig(max_letters=5, batch_size=6, steps=9, warmup_steps=3, evaluate_every=4),
    device="cpu",
)
TOPOLOGIES = ["encoder-decoder", "encoder-only", "decoder-only"]
# Settings that a script honours, and their other values: with the defaults, all that are accepted.
FLIPS = {
    "topology": ["encoder-only", "decoder-only"],
    "causal_mask": [True, False],
    "padding_mask": [False],
    "mask_fill": ["-1e9"],
    "examples": [7],
    "n_encoder_layers": [3],
    "n_decoder_layers": [1],
    "n_heads": [2, 1],
    "d_model": [15],
    "d_ff": [7],
    "dropout": [0.5],
    "dropout_on": [(place,) for place in DROPOUT_PLACES],
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
    "initialisation": ["xavier", "normal"],
    "embedding_std": [None, 0.3],
    "min_letters": [4],
    "max_letters": [7],
    "pad_to": [12],
    "batch_size": [3],
    "steps": [5],
    "optimizer": ["adam"],
    "learning_rate": [0.02, 1e-4],
    "betas": [(0.5, 0.6)],
    "adam_eps": [0.1],
    "weight_decay": [2.0],
    "warmup_steps": [0, 40],
    "schedule": ["cosine", "constant"],
    "clip": [None, 0.05],
    "label_smoothing": [0.3],
}
# Settings of which a script writes some values; another one is refused.
FIXED = {
    "task": "copy",
    "tokenizer": "bpe",
    "precision": "bfloat16",
    "decoding": "beam",
    "tensorboard": True,
}
ELSEWHERE = {"src_vocab_size", "tgt_vocab_size", "max_len", "cuda_graphs"}  # of the task, or of speed alone
TESTED_APART = {"evaluate_every", "goal"}
OF_OTHERS = {  # these mean something only where a setting in FIXED has another value
    *("shift", "language", "digits", "to_words", "patterns", "adjectives", "pairs"),
    *("tokenizer_file", "vocabulary", "min_frequency", "beam_width", "length_penalty"),
}
MIXED = [
    {
        "norm": "scalar",
        "norm_placement": "post",
        "positions": "learned",
        "embedding_tables": "one",
        "padding_row": True,
        "initialisation": "xavier",
        "embedding_std": None,
        "final_norm": False,
        "qkv_bias": False,
        "score_scale": "sqrt_d_model",
        "activation": "leaky_relu",
        "embedding_scale": "encoder",
        "optimizer": "adam",
        "schedule": "cosine",
        "warmup_steps": 0,
        "clip": None,
        "label_smoothing": 0.1,
        "pad_to": 20,  # longer than twice the longest word
    },
    {
        "norm": "scalar",
        "norm_placement": "branch",
        "positions": "none",
        "initialisation": "normal",
        "output_bias": False,
        "activation": "gelu",
        "embedding_scale": "none",
        "schedule": "constant",
        "padding_row": True,
        "dropout": 0.4,
        "dropout_on": DROPOUT_PLACES,
        "d_model": 15,
    },
    {"norm_placement": "post", "optimizer": "adam", "weight_decay": 0.5, "goal": 0.5, "recipe": 'a"""\nb\\'},
    *(
        {"topology": topology, "causal_mask": causal, "padding_mask": padding}
        for topology in TOPOLOGIES
        for causal in (None, not topology.startswith("encoder-o"), topology.startswith("encoder-o"))
        for padding in (True, False)
        if (causal, padding) != (None, True)
    ),
    {
        "topology": "encoder-only",
        "n_encoder_layers": 3,
        "embedding_tables": "one",
        "padding_row": True,
        "padding_mask": False,
        "embedding_scale": "encoder",
        "positions": "learned",
        "final_norm": False,
        "dropout": 0.3,
        "dropout_on": ("encoder_attention",),
        "pad_to": 11,
        "examples": 20,
        "goal": 0.5,
    },
    {
        "topology": "decoder-only",
        "n_decoder_layers": 3,
        "embedding_tables": "one",
        "padding_row": True,
        "mask_fill": "-1e9",
        "embedding_scale": "encoder",
        "positions": "learned",
        "initialisation": "xavier",
        "embedding_std": None,
        "dropout": 0.3,
        "dropout_on": ("encoder_attention",),
        "pad_to": 20,
        "examples": 20,
        "batch_size": 8,
    },
    {
        "topology": "decoder-only",
        "causal_mask": False,
        "mask_fill": "-1e9",
        "pad_to": 11,
        "norm_placement": "post",
        "dropout": 0.3,
        "dropout_on": DROPOUT_PLACES,
    },
]
CASES = [{}, *({name: value} for name, values in FLIPS.items() for value in values), *MIXED]


def label(changes):
    return ",".join(f"{name}={value}" for name, value in changes.items())[:60] or "default"


def run_of(**changes):
    """The names of a script, and our own state of the same configuration."""
    config = BASE.with_changes(**changes)
    names = {"__name__": "experiment"}
    exec(compile(script(config), "experiment.py", "exec"), names)
    return names, TrainState.begin(config)


def twin(names, state, fill=None):
    """The script's model with our weights."""
    if fill is not None:
        fill(state.model)
        if state.config.model.padding_row:
            table_of(state.model).weight.data[0] = 0.0
    model = names["Transformer"]()
    model.load_state_dict(state.model.state_dict())  # every name is there, and no other
    return model


def table_of(model):
    """The table of the stack that writes."""
    return model.tgt_embedding if hasattr(model, "tgt_embedding") else model.src_embedding


def inputs(state, batch):
    """What the script's model takes of a batch, and its labels."""
    src, tgt, labels = state.to_device(batch)
    return ((src, tgt) if state.config.model.topology == "encoder-decoder" else (src,)), labels


def test_every_setting_is_honoured_or_refused():
    settings = {f.name for f in (*fields(ModelConfig), *fields(TrainConfig))}
    assert settings == set(FLIPS) | set(FIXED) | ELSEWHERE | TESTED_APART | OF_OTHERS


@pytest.mark.parametrize(("name", "value"), FIXED.items())
def test_what_a_script_cannot_do_is_refused(name, value):
    config = RunConfig()
    group = config.model if hasattr(config.model, name) else config.train
    object.__setattr__(group, name, value)
    said = f"{name}={re.escape(repr(value))} cannot be written as a script"
    if name == "task":
        said = "The script is written for the reversal only"
    with pytest.raises(InputError, match=f"^{said}.*; choose ") as refused:
        script(config)
    assert script_problem(config) == str(refused.value)
    assert script_problem(RunConfig()) is None


@pytest.mark.parametrize("changes", CASES, ids=label)
def test_with_our_weights_it_gives_our_logits(changes, fill):
    names, state = run_of(**changes)
    model, batch = twin(names, state, fill), state.task.encode(["abcde", "a", "zz", "helo"])
    state.model.double(), model.double()  # so that only a difference of meaning is seen
    given, labels = inputs(state, batch)
    assert len({int((row != 0).sum()) for row in given[0]}) == 4
    ours = state.model.eval()(*state.to_device(batch)[:2])
    theirs = model.eval()(*given)
    torch.testing.assert_close(theirs, ours, rtol=0.0, atol=1e-5)
    assert ours.std() > 0.01

    *made, made_labels = names["as_tensors"](["abcde", "a", "zz", "helo"])
    assert len(made) == len(given)
    assert all(torch.equal(theirs, ours) for theirs, ours in zip(made, given, strict=True))
    assert torch.equal(made_labels, labels)


@pytest.mark.parametrize("changes", [c for c in CASES if not c.get("dropout")], ids=label)
def test_from_our_weights_and_words_it_learns_as_we_do(changes):
    names, state = run_of(**changes, evaluate_every=1000)
    n_steps = state.config.train.steps - 1  # the last would evaluate
    model, words = twin(names, state), [state.task.words(state.config.seed, k) for k in range(n_steps)]
    steps, theirs = zip(*names["train"](model, words), strict=True)
    assert steps == tuple(range(1, n_steps + 1))
    ours = [loss for report in itertools.islice(train(state), n_steps) for loss in report.losses]
    assert theirs == pytest.approx(ours, rel=2e-4, abs=2e-5)
    if state.config.model.padding_row:
        assert not table_of(model).weight[0].any()


@pytest.mark.parametrize("decay", ["linear", "cosine", "constant"])
@pytest.mark.parametrize("warmup", [0, 1, 50, 299, 300, 1000])
def test_the_rate_is_ours_at_every_step(decay, warmup):
    names, state = run_of(schedule=decay, warmup_steps=warmup, steps=300, learning_rate=0.007)
    theirs = [names["learning_rate"](step) for step in range(1, 301)]
    assert theirs == pytest.approx([state.stretch.rate(step) for step in range(1, 301)], rel=1e-12)


@pytest.mark.parametrize(
    ("placement", "topology"),
    [
        ("pre", TOPOLOGIES[0]),
        ("post", TOPOLOGIES[0]),
        ("branch", TOPOLOGIES[0]),
        *(("pre", t) for t in TOPOLOGIES[1:]),
    ],
)
@pytest.mark.parametrize(
    "places", [(), *((place,) for place in DROPOUT_PLACES), ("residual", "encoder_attention"), DROPOUT_PLACES]
)
def test_dropout_acts_where_ours_does(places, placement, topology, fill, monkeypatch):
    names, state = run_of(dropout=0.3, dropout_on=places, norm_placement=placement, topology=topology)
    model = twin(names, state, fill)
    acts = bool(places)
    assert {m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)} == ({0.3} if acts else set())
    # Both made to do the same visible thing wherever they act.
    monkeypatch.setattr(Dropout, "forward", lambda self, x: x * 1.7 - 0.1 if self.active else x)
    monkeypatch.setattr(torch.nn.Dropout, "forward", lambda self, x: x * 1.7 - 0.1 if self.training else x)
    batch = state.task.encode(["abcde", "zzyxw"])  # no padding, which ours leaves out in training
    given, _ = inputs(state, batch)
    ours = state.model.train()(*state.to_device(batch)[:2])
    torch.testing.assert_close(model.train()(*given), ours, rtol=0.0, atol=1e-5)
    moved = not torch.allclose(model(*given), model.eval()(*given))
    assert moved == acts
    dropping = []
    model.register_forward_pre_hook(lambda module, _: dropping.append(module.training and acts))
    names["exact_share"](model.train(), ["abc"])
    assert dropping == [False]
    assert model.training


@pytest.mark.parametrize(
    "changes",
    [c for c in CASES if set(c) & {"initialisation", "embedding_std", "padding_row", "norm", "qkv_bias"}]
    + [{}, {"initialisation": "xavier", "embedding_std": None}, {"initialisation": "normal"}],
    ids=label,
)
def test_first_weights_are_drawn_as_ours_are(changes):
    names, state = run_of(**{"d_model": 60, "d_ff": 90, **changes})
    torch.manual_seed(0)
    theirs, ours = names["Transformer"]().state_dict(), state.model.state_dict()
    assert theirs.keys() == ours.keys()
    for name, weights in ours.items():
        few = weights.numel() < 30
        assert (theirs[name] == 0).sum() == (weights == 0).sum(), name
        assert float(theirs[name].mean()) == pytest.approx(float(weights.mean()), abs=0.1), name
        if not few:
            assert float(theirs[name].std()) == pytest.approx(float(weights.std()), rel=0.3), name
            assert float(theirs[name].abs().max()) == pytest.approx(float(weights.abs().max()), rel=0.6), name


def test_words_are_drawn_as_ours_are():
    names, _ = run_of(min_letters=2, max_letters=6)
    rng = names["random"].Random(0)
    trained = [names["draw_word"](rng, 2, held_out=False) for _ in range(5000)]
    asked = [names["draw_word"](rng, 3, held_out=True) for _ in range(500)]
    assert not any(map(is_held_out, trained))
    assert all(map(is_held_out, asked))
    assert {len(word) for word in asked} == {3, 4, 5, 6}
    assert min(Counter(map(len, trained)).values()) > 900
    assert max(Counter(map(len, trained)).values()) < 1100
    assert set("".join(trained)) == set("abcdefghijklmnopqrstuvwxyz")
    assert all(names["is_held_out"](word) == is_held_out(word) for word in [*trained, *asked, "a", "zz"])


def test_its_measures_are_ours(half_trained):
    names = {"__name__": "experiment"}
    exec(script(half_trained.config), names)
    model, words = twin(names, half_trained), half_trained.task.held_out()[:300]
    ours = evaluate(half_trained, words)
    assert 0.02 < ours.exact < 0.98
    assert names["exact_share"](model, words) == pytest.approx(ours.exact)

    batch = half_trained.task.encode(words[:64])
    with torch.no_grad(), record(half_trained.model.eval(), {"weights"}):
        half_trained.model(*half_trained.to_device(batch)[:2])
        weights = half_trained.model.decoder[0].cross_attention.attention_weights.numpy()
    theirs = names["mirror_scores"](model, words[:64])
    assert theirs[0].tolist() == pytest.approx(
        head_scores(weights, "cross", [*map(len, words[:64])])["mirror"], abs=1e-5
    )


@pytest.mark.parametrize("padding", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_its_measures_are_ours_for_every_topology_and_mask(topology, causal, padding):
    """Where rows look ahead, one pass would say that all is right: it has to write by itself."""
    names, state = run_of(
        topology=topology,
        causal_mask=causal,
        padding_mask=padding,
        d_model=24,
        max_letters=3,
        batch_size=32,
        steps=90,
        learning_rate=0.01,
        evaluate_every=1000,
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
    sites = [site for site in measured if kind != "cross" or "cross" in site]
    expected = [measured[site]["mirror"] for site in sites]
    found = names["mirror_scores"](model, scored)
    assert found.shape == (len(sites), 3)
    for theirs, mirror in zip(found.tolist(), expected, strict=True):
        assert theirs == pytest.approx(mirror, abs=1e-5)


def test_a_finite_set_is_seen_once_in_each_epoch_in_ever_other_orders():
    names, _ = run_of(examples=14, batch_size=6)
    assert names["EXAMPLES"] == 14
    examples = [chr(97 + i) for i in range(14)]
    batches = list(itertools.islice(names["in_epochs"](names["random"].Random(1), examples), 9))
    assert [len(words) for words in batches] == [6, 6, 2] * 3
    epochs = [sum(batches[i : i + 3], []) for i in (0, 3, 6)]
    assert all(sorted(epoch) == examples for epoch in epochs)
    assert len(set(map(tuple, epochs))) == 3


SMALL = RunConfig(
    model=ModelConfig(n_encoder_layers=1, n_decoder_layers=1, n_heads=2, d_model=32, d_ff=64),
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
    out = printed(SMALL.with_changes(topology=topology, n_encoder_layers=2, n_decoder_layers=2), tmp_path)
    steps = re.findall(
        r"^step +(\d+)   loss (\d\.\d{4})   exact +([\d.]+)% of 200 held-out words$", out, re.M
    )
    assert [int(step) for step, _, _ in steps] == [50, 100, 150, 200, 250]
    assert float(steps[-1][1]) < float(steps[0][1]) / 2
    exact = re.search(r"^([\d.]+)% of 1,000 words that were never trained on are exact$", out, re.M)
    assert float(exact[1]) > 50
    stack = "encoder" if topology == "encoder-only" else "decoder"
    assert re.search(rf"^Clearest: {stack} layer [12], head [12]; mirror score [01]\.\d\d\.$", out, re.M)
    rows = [line.split() for line in out.split("(rows; columns are read):\n\n")[1].splitlines()]
    read = ["[SOS]", "c", "a", "t", "[EOS]"]
    if topology == "decoder-only":
        read = ["[SOS]", "c", "a", "t", "[SEP]", *(row[0] for row in rows[1:-1])]
    assert rows[0] == read
    assert [row[0] for row in rows[1:]] == ["t", "a", "c", "[EOS]"]
    for i, row in enumerate(rows[1:]):
        assert len(row) == 1 + (5 + i if topology == "decoder-only" else 5)
        assert sum(float(w) for w in row[1:] if w != ".") == pytest.approx(100, abs=4)


@pytest.mark.parametrize("topology", ["encoder-decoder", "decoder-only"])
def test_without_the_causal_mask_it_says_that_a_low_loss_is_no_learning(tmp_path, topology):
    config = SMALL.with_changes(topology=topology, causal_mask=False, examples=150, steps=150)
    out = printed(config, tmp_path)
    steps = re.findall(r"^step +(\d+)   loss (\d\.\d{4})   exact +([\d.]+)% of 200", out, re.M)
    assert float(steps[-1][1]) < 0.5
    assert float(steps[-1][2]) < 5
    assert "Its weights in % while it writes cat backwards" in out


def test_it_stops_at_the_goal_and_evaluates_when_it_is_told(tmp_path):
    config = SMALL.with_changes(goal=1e-9, evaluate_every=7, learning_rate=0.01, dropout=0.1, pad_to=8)
    steps = [int(step) for step in re.findall(r"^step +(\d+) ", printed(config, tmp_path), re.M)]
    assert steps == list(range(7, steps[-1] + 1, 7))
    assert steps[-1] < 240


@pytest.mark.parametrize("changes", CASES, ids=label)
def test_it_has_what_the_configuration_uses_and_no_more(changes):
    text = script(BASE.with_changes(**changes))
    tree = ast.parse(text)
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {"torch", "hashlib", "math", "random"}
    used = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {
        alias.asname or alias.name.split(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assigned = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    constant = BASE.with_changes(**changes).train.schedule == "constant"
    assert defined | assigned - {"_"} <= used | ({"STEPS"} if constant else set())
    finite = BASE.with_changes(**changes).train.examples is not None
    assert ("EXAMPLES" in assigned) == ("in_epochs" in defined) == finite
    attributes = {
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    }
    loaded = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    assert attributes - {"padding_idx"} <= loaded
    # No branch asks about a setting: the choice was made when the script was written.
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp):
            asked = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
            assert asked - {n.upper() for n in asked} or asked == {"STEPS"}, ast.unparse(node.test)
    assert not re.search(r"#\?|\$|scaled_dot_product|MultiheadAttention", text)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 110
    assert "\n\n\n\n" not in text


def test_the_default_is_read_in_one_sitting():
    text = script(RunConfig())
    assert len(text.splitlines()) <= 260
    for unused in ("Dropout", "eval()", "ScalarNorm", "LABEL_SMOOTHING", "GOAL", "PAD_TO", "padding_idx"):
        assert unused not in text


def test_the_text_of_a_recipe_stays_in_its_comment():
    text = script(RunConfig(recipe='"""\nimport os  # ${seed} é'))
    comment = text[text.index("# ---- Settings") :].splitlines()[0]
    assert comment == '# ---- Settings: \'"""\\nimport os  # ${seed} \\xe9\' ----'
    compile(text, "experiment.py", "exec")


@pytest.mark.parametrize(
    ("shortest", "longest", "word"),
    [
        (1, 12, "banana"),
        (1, 5, "tiger"),
        (1, 3, "cat"),
        (10, 12, "playground"),
        (30, 40, "abcdefghijklmnopqrstuvwxyzabcd"),
    ],
)
def test_the_word_shown_has_a_length_that_is_trained_on(shortest, longest, word):
    assert f"while it writes {word} backwards" in script(
        RunConfig(train=TrainConfig(min_letters=shortest, max_letters=longest))
    )


@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_a_device_that_was_chosen_is_written_down(device):
    assert f'\nDEVICE = "{device}"\n' in script(RunConfig(device=device))
