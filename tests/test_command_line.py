"""The command line: exit codes, one line for a mistake, one line of JSON at the end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from transformer.__main__ import main
from transformer.asking import asked
from transformer.commands import train as train_command
from transformer.interventions import Block, Interventions
from transformer.recording.records import Record, rewrite
from transformer.recording.tape import record
from transformer.recording.weights import Weights
from transformer.runs.run import Run
from transformer.storage import archive as archives
from transformer.storage.archive import Archive
from transformer.storage.saved import read_run
from transformer.training import device, evaluation
from transformer.training.state import TrainState

ROOT = Path(__file__).parents[1]
KEYS = (
    "task recipe topology seed device threads parameters steps seconds "
    "train_loss exact token_accuracy bleu chrf first_step_at mirror alignment_mass "
    "pairs_read pairs_used pairs_skipped"  # in this order
).split()


@pytest.fixture
def config_file(tiny, tmp_path):
    path = tmp_path / "tiny.json"
    path.write_text(tiny().to_json(), encoding="utf-8")
    return str(path)


@pytest.fixture
def train(config_file, capsys):
    """Run `train` with these arguments: (exit code, lines on standard output, standard error)."""

    def run(*arguments, config=config_file):
        try:
            code = main(["train", *(["--config", config] if config else []), *arguments])
        except SystemExit as ended:
            code = ended.code
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err

    return run


def every_right(model, task, words, **_settings):
    return SimpleNamespace(exact=[True] * len(words), loss=0.0)


def complaint(error):
    """The one line that a person reads."""
    lines = error.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("headlight: ")
    return lines[0].removeprefix("headlight: ")


def test_a_run_ends_with_one_line_of_json_that_equals_the_run_in_the_app(train, make_run, tiny, until):
    code, lines, _ = train("--json", "--seed", "4", "--steps", "6")
    assert code == 0
    said = json.loads(lines[-1])
    assert list(said) == KEYS
    run = make_run(tiny(seed=4, steps=6))
    run.start()
    until(lambda: run.view.state == "finished")
    view, known = run.view, run.view.frame.evaluation
    assert said.pop("seconds") > 0.0
    assert said == {
        "task": "reverse",
        "recipe": "default",
        "topology": "encoder-decoder",
        "seed": 4,
        "device": "cpu",
        "threads": 1,
        "parameters": view.parameters,
        "steps": 6,
        "train_loss": float(view.metrics.column("loss")[-1]),
        "exact": known.right / 1000,
        "token_accuracy": known.token_accuracy,
        "first_step_at": {},
        "mirror": view.frame.best[1],
        "alignment_mass": view.frame.best[1],  # the gold links of the reversal are the mirrored letters
        **dict.fromkeys(("bleu", "chrf", "pairs_read", "pairs_used", "pairs_skipped")),
    }


def test_the_module_runs_as_a_program(config_file):
    command = [
        sys.executable,
        "-m",
        "transformer",
        "train",
        "--config",
        config_file,
        "--steps",
        "3",
        "--json",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert list(said) == KEYS
    assert said["steps"] == 3
    assert "3/3" in done.stderr


def test_a_mistake_on_the_program_s_command_line_is_one_line_without_a_traceback():
    command = [sys.executable, "-m", "transformer", "train", "--task", "sorting"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout == ""
    assert complaint(done.stderr) == (
        "task='sorting' does not exist; choose reverse, copy, sort, caesar, dates, numbers, en-fr, en-it, "
        "zh-en or pairs."
    )


def test_without_json_the_last_line_says_how_it_ended(train):
    code, lines, _ = train()
    assert code == 0
    assert len(lines) == 1
    assert lines[0].startswith("All 8 steps are done: ")


def test_a_missed_target_is_exit_code_1_and_a_reached_one_stops_with_0(train, monkeypatch):
    code, lines, _ = train("--target", "0.99", "--json")
    assert (code, json.loads(lines[-1])["steps"]) == (1, 8)
    monkeypatch.setattr(evaluation, "spell", every_right)
    code, lines, _ = train("--target", "0.99", "--json")
    said = json.loads(lines[-1])
    assert (code, said["steps"], said["exact"]) == (0, 4, 1.0)
    assert said["first_step_at"] == {"0.5": 4, "0.9": 4, "0.99": 4}


@pytest.mark.parametrize("topology", ["encoder-only", "decoder-only"])
def test_a_topology_is_trained_kept_and_asked(train, capsys, tmp_path, topology):
    code, lines, _ = train("--topology", topology, "--steps", "3", "--json", "--out", str(tmp_path / "run"))
    said = json.loads(lines[-1])
    assert (code, said["topology"], said["steps"]) == (0, topology, 3)
    assert 0.0 <= said["mirror"] <= 1.0
    assert main(["attend", str(tmp_path / "run"), "--text", "frog", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    tokens = (
        ["[SOS]", *"frog", "[EOS]"] if topology == "encoder-only" else ["[SOS]", *"frog", "[SEP]", *"gorf"]
    )
    assert answer["src_tokens"] == answer["tgt_tokens"] == tokens
    assert {len(maps[0]) for maps in answer["maps"].values()} == {len(tokens)}


def test_without_a_target_the_goal_of_a_configuration_does_not_stop_the_run(
    train, tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(evaluation, "spell", every_right)
    path = tmp_path / "goal.json"
    path.write_text(tiny(goal=0.5).to_json(), encoding="utf-8")
    code, lines, _ = train("--json", config=str(path))
    assert (code, json.loads(lines[-1])["steps"]) == (0, 8)


def test_a_failed_run_is_exit_code_1_with_its_reason(train, tiny, tmp_path):
    path = tmp_path / "wild.json"
    path.write_text(tiny(learning_rate=1e30).to_json(), encoding="utf-8")
    code, lines, error = train("--json", config=str(path))
    assert code == 1
    assert error.splitlines()[-1].startswith("headlight: At step ")
    assert json.loads(lines[-1])["steps"] < 8


def test_an_interrupted_run_is_stopped_and_is_exit_code_1(train, monkeypatch):
    shown = []

    def show(bar, view):
        shown.append(view.state)
        if view.step > 2 and shown.count("interrupted") == 0:
            shown.append("interrupted")
            raise KeyboardInterrupt

    monkeypatch.setattr(train_command, "_show", show)
    code, lines, _ = train("--steps", "1000000")
    assert code == 1
    assert lines[0].startswith("Stopped at step ")
    assert shown[-1] == "stopped"


def test_the_folder_holds_the_run(train, tmp_path):
    folder = tmp_path / "kept"
    code, lines, _ = train("--out", str(folder), "--json")
    assert code == 0
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert (facts["state"], facts["step"]) == ("finished", json.loads(lines[-1])["steps"])
    code, lines, error = train("--out", str(folder))
    assert (code, lines) == (2, [])
    assert complaint(error) == f"The folder {folder} is not empty; choose a new one."


def test_a_run_that_is_kept_records_every_step_and_another_its_evaluations_alone(
    train, tmp_path, monkeypatch
):
    runs = []
    monkeypatch.setattr(train_command, "Run", lambda *_, **given: runs.append(Run(*_, **given)) or runs[-1])
    train()
    train("--out", str(tmp_path / "kept"))
    alone, kept = (run.view for run in runs)
    assert alone.frames.steps == tuple(one.step for one in alone.snapshots) == (0, 4, 8)
    view = read_run(tmp_path / "kept").view
    assert kept.frames.steps == view.frames.steps == tuple(range(9))
    assert [one.step for one in view.snapshots] == [*range(9)]
    assert alone.metrics.column("loss").tolist() == kept.metrics.column("loss").tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "steps=0 is outside 1 to 1,000,000; choose a value in between."),
        (
            ["--steps", "many"],
            "argument --steps: invalid int value: 'many' (see python -m transformer train --help)",
        ),
        (["--target", "1.5"], "goal=1.5 cannot be used; choose more than 0 and at most 1."),
        (["--target", "nan"], "goal=nan is not a finite number; choose one like 0.001."),
        (["--seed", "-1"], "seed=-1 is outside 0 to 4,294,967,295; choose a value in between."),
        (["--device", "tpu"], "argument --device: invalid choice: 'tpu'"),
        (["--device", "cuda"], "This machine has no cuda device; it has cpu. Choose auto or one of these."),
        (["--task", "fly"], "task='fly' does not exist; choose reverse, "),
        (["--colour", "red"], "unrecognized arguments: --colour red (see python -m transformer --help)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments_are_exit_code_2_and_one_line(train, monkeypatch, arguments, message):
    monkeypatch.setattr(device, "available_devices", lambda: ("cpu",))
    code, lines, error = train(*arguments)
    assert (code, lines) == (2, [])
    assert complaint(error).startswith(message)


def test_a_configuration_that_cannot_be_read_is_exit_code_2_and_one_line(train, tmp_path):
    missing, broken, binary = (tmp_path / name for name in ("missing.json", "broken.json", "binary.json"))
    broken.write_text('{"model": {"d_modle": 3}}', encoding="utf-8")
    binary.write_bytes(b"\xff\xfe\x00")
    for path, message in (
        (missing, f"The configuration {missing} cannot be read ("),
        (broken, "ModelConfig has no setting 'd_modle'; did you mean 'd_model'?"),
        (binary, f"The configuration {binary} cannot be read ("),
    ):
        code, lines, error = train(config=str(path))
        assert (code, lines) == (2, [])
        assert complaint(error).startswith(message)


def test_no_command_is_exit_code_2_and_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert complaint(capsys.readouterr().err).startswith("the following arguments are required: command")


# Going on with a kept run.


@pytest.fixture
def resume(capsys):
    """Run `train --resume` with this folder: (exit code, lines on standard output, standard error)."""

    def run(folder, *arguments):
        capsys.readouterr()
        try:
            code = main(["train", "--resume", str(folder), *arguments])
        except SystemExit as ended:
            code = ended.code
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err

    return run


def interrupted_at(monkeypatch, step):
    """Ctrl-C at exactly this step."""

    pressed = []

    def show(bar, view):
        if view.state == "paused" and not pressed:
            pressed.append(view.step)
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "start", lambda run: run.advance(step))
    monkeypatch.setattr(train_command, "_show", show)


def facts_of(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def test_a_goal_may_be_set_like_any_other_setting(train):
    few = ("--steps", "2", "--set", "d_model=8", "--set", "n_heads=2")
    assert train(*few)[0] == 0  # there is nothing to reach
    assert train(*few, "--set", "goal=0.5")[0] == 1  # in two steps it is not reached
    assert train(*few, "--target", "0.5", "--set", "goal=null")[0] == 0


def test_an_interrupted_run_goes_on_to_the_end_of_its_plan(
    train, resume, losses, tiny, tmp_path, monkeypatch
):
    folder = tmp_path / "kept"
    with monkeypatch.context() as patched:
        interrupted_at(patched, 31)
        assert train("--steps", "60", "--set", "dropout=0.1", "--out", str(folder))[0] == 1
    stood = facts_of(folder)
    assert (stood["state"], stood["step"], stood["planned"]) == ("stopped", 31, 60)
    code, lines, _ = resume(folder, "--json")
    said = json.loads(lines[-1])
    assert (code, said["steps"], said["seed"]) == (0, 60, 0)
    expected = losses(tiny(steps=60, dropout=0.1))
    assert pd.read_parquet(folder / "metrics.parquet")["loss"].tolist() == expected
    assert said["train_loss"] == expected[-1]
    after = facts_of(folder)
    assert (after["state"], after["id"]) == ("finished", stood["id"])
    assert after["seconds"] > stood["seconds"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seed", "0"],
        ["--seed", "1"],
        ["--steps", "1"],
        ["--steps", "90"],
        ["--most", "1"],
        ["--least", "2"],
        ["--target", "1"],
        ["--task", "copy"],
        ["--pairs", "a.tsv"],
        ["--swap"],
        ["--longest", "3", "3"],
        ["--tokenizer", "words"],
        ["--recipe", "default"],
        ["--paper"],
        ["--topology", "encoder-only"],
        ["--config", "a.json"],
        ["--set", "dropout=0.1"],
        ["--tensorboard"],
        ["--out", "elsewhere"],
        ["--device", "cpu"],
    ],
    ids=" ".join,
)
def test_a_run_goes_on_with_its_own_settings_and_others_are_refused(resume, tmp_path, arguments):
    code, lines, error = resume(tmp_path, *arguments)
    assert (code, lines) == (2, [])
    name = arguments[0]
    assert complaint(error) == f"--resume goes on with the settings of the run; leave out {name}."


def test_a_run_that_cannot_go_on_is_exit_code_2_and_one_line(resume, train, tiny, tmp_path):
    nowhere, finished, failed, damaged = (tmp_path / n for n in ("nowhere", "finished", "failed", "damaged"))
    train("--out", str(finished))
    shutil.copytree(finished, damaged)
    (damaged / "run.json").write_text(json.dumps({**facts_of(damaged), "state": "stopped"}))
    (damaged / "training.safetensors").write_bytes(b"")
    path = tmp_path / "wild.json"
    path.write_text(tiny(learning_rate=1e30).to_json(), encoding="utf-8")
    train("--out", str(failed), config=str(path))
    for folder, message in (
        (nowhere, f"{nowhere} is no saved run: run.json cannot be read ("),
        (finished, f"The run in {finished} is finished: All 8 steps are done: "),
        (failed, f"The run in {failed} cannot go on: At step "),
        (damaged, f"The run in {damaged} cannot go on: damaged/training.safetensors cannot be read ("),
    ):
        before = {file: file.read_bytes() for file in folder.rglob("*.*")}
        code, lines, error = resume(folder)
        assert (code, lines) == (2, [])
        assert complaint(error).startswith(message)
        assert {file: file.read_bytes() for file in folder.rglob("*.*")} == before


def test_a_run_that_another_process_trains_is_left_to_it(resume, train, tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    with monkeypatch.context() as patched:
        interrupted_at(patched, 1)
        train("--steps", "100000", "--out", str(folder))
    holding = Archive(folder, resumed=True)
    code, lines, error = resume(folder)
    assert (code, lines) == (2, [])
    assert complaint(error) == f"Another process trains the run in {folder}; watch it, or stop it."
    holding.close()


def test_a_run_that_could_not_be_kept_to_its_end_is_exit_code_1_and_says_so(train, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archives, "append", refuse)
    monkeypatch.setattr(archives, "rewrite", refuse)
    code, lines, error = train("--out", str(tmp_path / "kept"), "--json")
    assert (code, json.loads(lines[-1])["steps"]) == (1, 8)
    assert error.splitlines()[-1].startswith(
        "headlight: What is new in this run is not on disk (No space left on device)."
    )


# Asking a saved run.


@pytest.fixture
def attend(capsys):
    """Run `attend` with these arguments: (exit code, lines on standard output, standard error)."""

    def run(folder, *arguments):
        capsys.readouterr()
        try:
            code = main(["attend", str(folder), *arguments])
        except SystemExit as ended:
            code = ended.code
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err

    return run


@pytest.fixture(scope="module")
def run_of_60_steps(tmp_path_factory, tiny_run, changed_midway):
    folder = tmp_path_factory.mktemp("saved") / "run"
    run = Run(tiny_run.with_changes(steps=60, evaluate_every=30), archive=Archive(folder))
    return changed_midway(run, 52, TAKEN), folder


@pytest.fixture
def saved_run(run_of_60_steps, tmp_path):
    """The view of a run of 60 steps that lost a head and some looks at step 52, and a copy of its folder in
    which the weights of few steps are kept."""
    view, folder = run_of_60_steps
    folder = shutil.copytree(folder, tmp_path / "run")
    weights_in(folder).keep({0, 5, 10, 48, 52, 60})
    return view, folder


def weights_in(folder):
    weights = Weights(folder / "weights.bin")
    weights.follow()
    return weights


TAKEN = Interventions(
    ablated=(("decoder.0.cross", 1),), blocked=(Block(site="decoder.1.cross", head=2, token="a"),)
)
TOKENS = ["[SOS]", *"banana", "[EOS]"]


@pytest.mark.parametrize(
    ("asked_for", "answers"),
    [("0", 0), ("-9", 0), ("7", 5), ("8", 10), ("51", 48), ("55", 52), ("99999", 60)],
)
def test_attend_is_answered_by_the_nearest_weights_on_this_side_of_the_intervention(
    attend, saved_run, asked_for, answers
):
    view, folder = saved_run
    code, lines, error = attend(folder, "--text", "banana", "--step", asked_for, "--json")
    assert (code, len(lines), error) == (0, 1, "")
    said = json.loads(lines[0])
    assert said["step"] == answers
    snapshot = view.snapshot_at(answers)
    model = asked(view.config, snapshot, snapshot.interventions)
    answer = model.answer("banana")
    assert said["src_tokens"] == TOKENS
    assert said["tgt_tokens"] == ["[SOS]", *"ananab"]
    assert said["output"] == answer.output
    assert list(said["maps"]) == [
        "encoder.0",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.self",
        "decoder.1.cross",
    ]
    for site, maps in said["maps"].items():
        weights = np.array(maps)
        n_rows, n_columns = (8 if site == "encoder.0" else 7), (7 if site.endswith("self") else 8)
        assert weights.shape == (3, n_rows, n_columns)
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)
        np.testing.assert_allclose(weights, np.nan_to_num(answer.forced.maps[site]), atol=1e-6)
        if site.endswith("self"):
            assert (np.triu(weights, 1) == 0).all()
    assert said["scores"].keys() == said["maps"].keys()
    for site, scores in said["scores"].items():
        assert scores.keys() == model.head_scores[site].keys()
        for name, values in scores.items():
            assert len(values) == 3
            assert values == pytest.approx(model.head_scores[site][name].tolist(), abs=1e-6)
    closed = np.array(said["maps"]["decoder.1.cross"])[:, :, [2, 4, 6]] == 0
    assert closed.all(axis=(1, 2)).tolist() == [False, False, answers >= 52]


def test_attend_at_step_0_is_the_untrained_model(attend, saved_run, tiny):
    _, folder = saved_run
    _, lines, _ = attend(folder, "--text", "ox", "--step", "0", "--json")
    state = TrainState.begin(tiny())
    src, tgt_in, _ = state.to_device(state.task.encode(["ox"]))
    with record(state.model) as tape:
        state.model(src, tgt_in)
    for site, maps in json.loads(lines[0])["maps"].items():
        np.testing.assert_allclose(maps, tape.weights[site][0], atol=1e-5)


def test_attend_without_a_step_is_the_last_model_and_without_json_one_line_for_people(attend, saved_run):
    view, folder = saved_run
    output = asked(view.config, view.snapshots[-1], TAKEN).answer("ox").output
    assert output != "xo", "eight steps are too few to be right"
    assert attend(folder, "--text", " OX ") == (0, [f"step 60: ox -> {output} (wrong, it is xo)"], "")
    _, lines, _ = attend(folder, "--text", "ox", "--json")
    assert json.loads(lines[0])["step"] == 60


def test_attend_says_when_an_answer_is_right(attend, saved_run, monkeypatch):
    monkeypatch.setattr("transformer.asking.Answer.right", True)
    _, lines, _ = attend(saved_run[1], "--text", "ox")
    assert lines[0].endswith(" (right)")


def _without(folder, name):
    path = folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _with_weights(folder, change):
    """Change the arrays of the last step."""
    weights = weights_in(folder)
    arrays = dict(weights.read(60))
    change(arrays)
    numbers = b"".join(array.astype("<f4").tobytes() for array in arrays.values())
    weights.append({60: numbers}, TAKEN, tuple((name, array.shape) for name, array in arrays.items()))
    weights.flush()


def _with_bytes(path, change):
    path.write_bytes(change(path.read_bytes()))


def _with_config(folder, config):
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps({**facts, "config": config}), encoding="utf-8")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("damage", "text", "message"),
    [
        (lambda f: shutil.rmtree(f), "ox", "{} is no saved run: run.json cannot be read (No such file"),
        (lambda f: _without(f, "run.json"), "ox", "{} is no saved run: run.json cannot be read ("),
        (lambda f: (f / "run.json").write_text("{"), "ox", "{} is no saved run: run.json is damaged ("),
        (lambda f: (f / "run.json").write_text("[]"), "ox", "{} is no saved run: run.json is damaged ("),
        (
            lambda f: _with_config(f, {"model": {"d_model": 7}}),
            "ox",
            "{} is no saved run: run.json is damaged (d_model=7 cannot be split into 4 equal heads; ",
        ),
        (
            lambda f: _with_config(f, {}),
            "ox",
            "The weights of step 60 do not fit this model (",
        ),
        (lambda f: _with_config(f, [3]), "ox", "{} is no saved run: run.json is damaged ("),
        (
            lambda f: (f / "run.json").write_text('{"format": 1, "config": {}}'),
            "ox",
            "{} has format 1; this version reads format 3.",
        ),
        (lambda f: _without(f, "weights.bin"), "ox", "{} holds no weights that could be asked."),
        (lambda f: _with_bytes(f / "weights.bin", lambda _: b""), "ox", "{} holds no weights that could be"),
        (lambda f: _with_bytes(f / "weights.bin", lambda b: b"PK\3\4" + b[4:]), "ox", "{} holds no weights"),
        (
            lambda f: _with_bytes(f / "weights.bin", lambda b: b[:-1] + b"~"),
            "ox",
            "weights.bin is damaged at",
        ),
        (
            lambda f: _with_weights(f, lambda arrays: arrays.pop("to_logits.bias")),
            "ox",
            "The weights of step 60 do not fit this model (",
        ),
        (
            lambda f: _with_weights(f, lambda arrays: arrays.update({"to_logits.bias": np.zeros(3)})),
            "ox",
            "The weights of step 60 do not fit this model (",
        ),
        (
            lambda f: rewrite(
                f / "weights.bin", [Record(b'{"step": 60, "tensors": [["a", [3]]]}', bytes(12))]
            ),
            "ox",
            "{} holds no weights that could be asked.",
        ),
        (lambda f: None, "naïve", "Only the letters a to z are in the alphabet, not “ï”. Try naive."),
        (lambda f: None, "", "There is no word to ask; type one, such as banana."),
        (lambda f: None, "a" * 500, "500 letters is too long; this run learns up to 5 letters"),
    ],
)
def test_what_cannot_be_asked_is_exit_code_2_and_one_line(attend, saved_run, damage, text, message):
    _, folder = saved_run
    damage(folder)
    for arguments in (["--text", text], ["--text", text, "--json"]):
        code, lines, error = attend(folder, *arguments)
        assert (code, lines) == (2, [])
        assert complaint(error).startswith(message.format(folder))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --text (see python -m transformer attend --help)"),
        (["--text", "ox", "--step", "last"], "argument --step: invalid int value: 'last' (see "),
    ],
)
def test_bad_arguments_of_attend_are_exit_code_2_and_one_line(attend, tmp_path, arguments, message):
    code, lines, error = attend(tmp_path, *arguments)
    assert (code, lines) == (2, [])
    assert complaint(error).startswith(message)


def test_attend_runs_as_a_program(saved_run):
    _, folder = saved_run
    command = [sys.executable, "-m", "transformer", "attend", str(folder), "--text", "banana", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["src_tokens"] == TOKENS
