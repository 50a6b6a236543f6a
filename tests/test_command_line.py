"""The command line: exit codes, one line for a mistake, one line of JSON at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from transformer import __main__ as command_line
from transformer.__main__ import main
from transformer.training import device, evaluation

ROOT = Path(__file__).parents[1]
KEYS = (
    "task recipe seed device parameters steps seconds train_loss exact first_step_at mirror"  # in this order
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
    view = run.view
    assert said.pop("seconds") > 0.0
    assert said == {
        "task": "reverse",
        "recipe": "default",
        "seed": 4,
        "device": "cpu",
        "parameters": view.parameters,
        "steps": 6,
        "train_loss": float(view.metrics.column("loss")[-1]),
        "exact": view.frame.exact[0] / 1000,
        "first_step_at": {},
        "mirror": view.frame.best[1],
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
    command = [sys.executable, "-m", "transformer", "train", "--task", "sort"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout == ""
    assert complaint(done.stderr) == "task='sort' is not built yet; choose reverse."


def test_without_json_the_last_line_says_how_it_ended(train):
    code, lines, _ = train()
    assert code == 0
    assert len(lines) == 1
    assert lines[0].startswith("All 8 steps are done: ")


def test_a_missed_target_is_exit_code_1_and_a_reached_one_stops_with_0(train, monkeypatch):
    code, lines, _ = train("--target", "0.99", "--json")
    assert (code, json.loads(lines[-1])["steps"]) == (1, 8)
    monkeypatch.setattr(evaluation, "exact_words", lambda state, words: [True] * len(words))
    code, lines, _ = train("--target", "0.99", "--json")
    said = json.loads(lines[-1])
    assert (code, said["steps"], said["exact"]) == (0, 4, 1.0)
    assert said["first_step_at"] == {"0.5": 4, "0.9": 4, "0.99": 4}


def test_without_a_target_the_goal_of_a_configuration_does_not_stop_the_run(
    train, tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(evaluation, "exact_words", lambda state, words: [True] * len(words))
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

    monkeypatch.setattr(command_line, "_show", show)
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
        (["--task", "fly"], "task='fly' does not exist; choose reverse."),
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
