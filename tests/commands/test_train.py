"""`train`: exit codes, one line for an error, one line of JSON at the end, and resuming a saved run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import complaint
from tests.conftest import change, facts_of, table_of, with_facts
from transformer.commands import train as train_command
from transformer.runs.run import Run
from transformer.storage import archive as archives
from transformer.storage.file import path_of
from transformer.storage.saved import read_run
from transformer.training import device

ROOT = Path(__file__).parents[2]
KEYS = (
    "task recipe topology seed device threads parameters steps seconds "
    "train_loss exact token_accuracy bleu chrf first_step_at mirror alignment_mass "
    "pairs_read pairs_used pairs_skipped"  # in this order
).split()


@pytest.fixture
def train(command, config_file):
    """Return a function that trains the tiny configuration with these arguments."""
    config = config_file()
    return lambda *arguments: command("train", "--config", config, *arguments)


def test_a_run_ends_with_one_line_of_json_that_equals_the_run_in_the_app(train, make_run, tiny, until):
    code, lines, error = train("--json", "--seed", "4", "--steps", "6")
    assert code == 0
    assert "6/6" in error
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


def test_the_module_runs_as_a_program():
    program = [sys.executable, "-m", "transformer", "train", "--task", "sorting"]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint(done.stderr).startswith("task='sorting' does not exist; choose reverse, copy, sort, ")


def test_a_missed_target_gives_exit_code_1_and_a_reached_target_ends_the_run_with_0(train, every_right):
    code, lines, _ = train("--target", "0.99", "--json")
    assert (code, json.loads(lines[-1])["steps"]) == (1, 8)
    every_right()
    code, lines, _ = train("--target", "0.99", "--json")
    said = json.loads(lines[-1])
    assert (code, said["steps"], said["exact"]) == (0, 4, 1.0)
    assert said["first_step_at"] == {"0.5": 4, "0.9": 4, "0.99": 4}


def test_a_goal_can_be_set_by_an_option_and_the_goal_of_a_configuration_file_is_ignored(
    train, command, config_file, every_right
):
    few = ("--steps", "2", "--set", "d_model=8", "--set", "n_heads=2")
    assert train(*few)[0] == 0  # no goal is set
    assert train(*few, "--set", "goal=0.5")[0] == 1  # not reached in two steps
    assert train(*few, "--target", "0.5", "--set", "goal=null")[0] == 0
    every_right()
    code, lines, _ = command("train", "--config", config_file(goal=0.5), "--json")
    assert (code, json.loads(lines[-1])["steps"]) == (0, 8)


@pytest.mark.parametrize(
    ("arguments", "topology"),
    [((), "decoder-only"), (("--topology", "encoder-decoder"), "encoder-decoder")],
)
def test_repeating_is_learned_by_a_decoder_alone_unless_other_stacks_are_chosen(command, arguments, topology):
    code, lines, _ = command("train", "--task", "repeat", *arguments, "--steps", "1", "--json")
    assert (code, json.loads(lines[-1])["topology"]) == (0, topology)


@pytest.mark.parametrize("topology", ["encoder-only", "decoder-only"])
def test_a_run_of_one_stack_is_trained_saved_and_queried(train, command, tmp_path, topology):
    code, lines, _ = train("--topology", topology, "--steps", "3", "--json", "--out", tmp_path / "run")
    said = json.loads(lines[-1])
    assert (code, said["topology"], said["steps"]) == (0, topology, 3)
    assert 0.0 <= said["mirror"] <= 1.0
    _, (line,), _ = command("attend", tmp_path / "run", "--text", "frog", "--json")
    answer = json.loads(line)
    tokens = ["[SOS]", *"frog", *(["[EOS]"] if topology == "encoder-only" else ["[SEP]", *"gorf"])]
    assert answer["src_tokens"] == answer["tgt_tokens"] == tokens
    assert {len(maps[0]) for maps in answer["maps"].values()} == {len(tokens)}


def test_a_failed_run_gives_exit_code_1_and_its_reason(command, config_file):
    code, lines, error = command("train", "--config", config_file(learning_rate=1e30), "--json")
    assert code == 1
    assert error.splitlines()[-1].startswith("headlight: At step ")
    assert json.loads(lines[-1])["steps"] < 8


def test_a_saved_run_records_every_step_and_an_unsaved_run_only_its_evaluations(
    train, refused, tmp_path, monkeypatch
):
    runs, folder = [], tmp_path / "kept"
    monkeypatch.setattr(train_command, "Run", lambda *_, **given: runs.append(Run(*_, **given)) or runs[-1])
    code, lines, _ = train()
    assert (code, len(lines)) == (0, 1)
    assert lines[0].startswith("All 8 steps are done: ")
    assert train("--out", folder)[0] == 0
    alone, kept = (run.view for run in runs)
    assert alone.frames.steps == tuple(snapshot.step for snapshot in alone.snapshots) == (0, 4, 8)
    view = read_run(path_of(folder)).view
    assert (view.state, view.step) == ("finished", 8)
    assert kept.frames.steps == view.frames.steps == tuple(range(9))
    assert [snapshot.step for snapshot in view.snapshots] == [*range(9)]
    assert alone.metrics.column("loss").tolist() == kept.metrics.column("loss").tolist()
    assert "exists; choose a new one" in refused("train", "--out", folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--steps 0", "steps=0 is outside 1 to 1,000,000; choose a value in between."),
        (
            "--steps many",
            "argument --steps: invalid int value: 'many' (see python -m transformer train --help)",
        ),
        ("--target 1.5", "goal=1.5 cannot be used; choose more than 0 and at most 1."),
        ("--target nan", "goal=nan is not a finite number"),
        ("--seed -1", "seed=-1 is outside 0 to 4,294,967,295"),
        ("--device tpu", "argument --device: invalid choice: 'tpu'"),
        ("--device cuda", "This machine has no cuda device; it has cpu."),
        ("--colour red", "unrecognized arguments: --colour red (see python -m transformer --help)"),
    ],
)
def test_bad_arguments_give_exit_code_2_and_one_line(refused, config_file, monkeypatch, arguments, message):
    monkeypatch.setattr(device, "available_devices", lambda: ("cpu",))
    assert refused("train", "--config", config_file(), *arguments.split()).startswith(message)


def test_a_missing_command_gives_exit_code_2_and_one_line(refused):
    assert refused().startswith("the following arguments are required: command")


def test_an_unreadable_configuration_gives_exit_code_2_and_one_line(refused, tmp_path):
    missing, broken, binary = (tmp_path / name for name in ("missing.json", "broken.json", "binary.json"))
    broken.write_text('{"model": {"d_modle": 3}}', encoding="utf-8")
    binary.write_bytes(b"\xff\xfe\x00")
    for path, message in (
        (missing, f"The configuration {missing} cannot be read ("),
        (broken, "ModelConfig has no setting 'd_modle'; did you mean 'd_model'?"),
        (binary, f"The configuration {binary} cannot be read ("),
    ):
        assert refused("train", "--config", path).startswith(message)


# Resuming a saved run.


def test_an_interrupted_run_is_stopped_and_can_be_resumed_to_the_end_of_its_plan(
    train, command, losses, tiny, tmp_path, monkeypatch
):
    folder, pressed = tmp_path / "kept", []

    def show(bar, view):  # Ctrl-C at exactly this step
        if view.state == "paused" and not pressed:
            pressed.append(view.step)
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Run, "start", lambda run: run.advance(11))
        patched.setattr(train_command, "_show", show)
        code, lines, _ = train("--steps", "20", "--set", "dropout=0.1", "--out", folder)
    assert (code, lines) == (1, ["Stopped at step 11."])
    stood = facts_of(path_of(folder))
    assert (stood["state"], stood["step"], stood["planned"]) == ("stopped", 11, 20)
    code, lines, _ = command("train", "--resume", folder, "--json")
    said = json.loads(lines[-1])
    assert (code, said["steps"], said["seed"]) == (0, 20, 0)
    expected = losses(tiny(steps=20, dropout=0.1))
    assert table_of(path_of(folder))["loss"].tolist() == expected
    assert said["train_loss"] == expected[-1]
    after = facts_of(path_of(folder))
    assert (after["state"], after["id"]) == ("finished", stood["id"])
    assert after["seconds"] > stood["seconds"]


OTHERS = (
    "--seed 0, --seed 1, --steps 1, --most 1, --least 2, --target 1, --task copy, --pairs a.tsv, --swap, "
    "--longest 3 3, --tokenizer words, --recipe default, --paper, --topology encoder-only, --config a.json, "
    "--set dropout=0.1, --tensorboard, --out elsewhere, --device cpu"
)


@pytest.mark.parametrize("arguments", OTHERS.split(", "))
def test_a_resumed_run_keeps_its_own_settings_and_others_are_refused(refused, tmp_path, arguments):
    name, *values = arguments.split()
    assert refused("train", "--resume", tmp_path, name, *values).endswith(f"; leave out {name}.")


def test_a_failed_resumption_gives_exit_code_2_and_one_line(refused, train, command, config_file, tmp_path):
    names = ("nowhere", "finished", "failed", "damaged", "held")
    nowhere, finished, failed, damaged, held = (tmp_path / f"{name}.headlight" for name in names)
    train("--out", finished)
    for stopped in (damaged, held):
        shutil.copy(finished, stopped)
        with_facts(stopped, state="stopped")
    change(damaged, "UPDATE training SET step = 3")
    holds_it = archives.Archive(held, resumed=True)
    command("train", "--config", config_file(learning_rate=1e30), "--out", failed)
    for folder, message in (
        (nowhere, f"{nowhere} is no run of Headlight: there is no such file."),
        (finished, f"The run in {finished} is finished: All 8 steps are done: "),
        (failed, f"The run in {failed} cannot be resumed: At step "),
        (damaged, f"The run in {damaged} cannot be resumed: Its saved training is at another step"),
        (held, f"Another process is training the run in {held}; watch it or stop it."),
    ):
        before = folder is not held and folder.exists() and folder.read_bytes()
        assert refused("train", "--resume", folder).startswith(message)
        assert before == (folder is not held and folder.exists() and folder.read_bytes())
    holds_it.close()


def test_a_run_that_could_not_be_fully_saved_gives_exit_code_1_and_the_reason(train, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archives.Mirror, "write", refuse)
    code, lines, error = train("--out", tmp_path / "kept", "--json")
    assert (code, json.loads(lines[-1])["steps"]) == (1, 8)
    assert "are not on disk (No space left on device)" in error.splitlines()[-1]


def test_several_seeds_give_the_runs_of_each_seed_and_a_line_on_all(train):
    code, lines, _ = train("--json", "--seed", "4", "--steps", "5", "--seeds", "2")
    assert code == 0
    *each, last = (json.loads(line) for line in lines)
    alone = [json.loads(train("--json", "--seed", seed, "--steps", "5")[1][-1]) for seed in ("4", "5")]
    for one, other in zip(each, alone, strict=True):
        assert one.pop("seconds") > 0 < other.pop("seconds")
        assert one == other
    assert last == {
        "seeds": [4, 5],
        "turned": [None, None],
        "in_common": "No head began to read backwards in any of 2 runs.",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seeds", "1"), "--seeds 1 is outside 2 to 12"),
        (("--seeds", "13"), "--seeds 13 is outside 2 to 12"),
        (("--seeds", "2", "--seed", str(2**32 - 1)), "seed=4,294,967,296 is outside"),
        (("--most", "0"), "--swap, --longest, --least and --most are about pairs"),
        (("--set", f"dropout={'[' * 10**5}"), "dropout="),
        (("--seeds", "2", "--out", "mine"), "leave out --out"),
    ],
)
def test_seeds_that_cannot_be_trained_are_refused(train, arguments, said):
    code, _, error = train(*arguments)
    assert code == 2
    assert said in complaint(error)
