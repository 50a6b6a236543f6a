"""`attend`: a saved run answers with its model at any step whose weights are kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import change, with_facts
from transformer.asking.model import snapshot_model
from transformer.recording.activations import record
from transformer.runs.run import Run
from transformer.shared.interventions import Block, Interventions
from transformer.storage.archive import Archive
from transformer.storage.file import Store
from transformer.storage.format import Mirror
from transformer.storage.saved import read_run
from transformer.training.state import TrainState

TAKEN = Interventions(
    ablated=(("decoder.0.cross", 1),), blocked=(Block(site="decoder.1.cross", head=2, token="a"),)
)
SITES = ["encoder.0", "decoder.0.self", "decoder.0.cross", "decoder.1.self", "decoder.1.cross"]


@pytest.fixture(scope="module")
def run_of_60_steps(tmp_path_factory, tiny_run, changed_midway):
    folder = tmp_path_factory.mktemp("saved") / "run.headlight"
    run = Run(tiny_run.with_changes(steps=60, evaluate_every=30), archive=Archive(folder))
    return changed_midway(run, 52, TAKEN), folder


@pytest.fixture
def saved_run(run_of_60_steps, tmp_path):
    """The view of a run of 60 steps, with a head switched off and cells blocked at step 52, and a copy of
    its file in which the weights of only a few steps are kept."""
    view, path = run_of_60_steps
    path = Path(shutil.copy(path, tmp_path / "run.headlight"))
    store, saved = Store(path, new=False), read_run(path)
    mirror = Mirror(None, saved.weights, saved=saved.view)
    saved.weights.keep({0, 5, 10, 48, 52, 60})
    mirror.thin(store)
    store.close()
    return view, path


@pytest.mark.parametrize(("step", "answers"), [("8", 10), ("51", 48), ("99999", 60)])
def test_a_step_is_answered_with_the_nearest_weights_on_its_side_of_the_intervention(
    command, saved_run, step, answers
):
    view, folder = saved_run
    code, lines, error = command("attend", folder, "--text", "banana", "--step", step, "--json")
    assert (code, len(lines), error) == (0, 1, "")
    said = json.loads(lines[0])
    snapshot = view.snapshot_at(answers)
    model = snapshot_model(view.config, snapshot, snapshot.interventions)
    answer = model.answer("banana")
    assert (said["step"], said["output"]) == (answers, answer.output)
    assert (said["src_tokens"], said["tgt_tokens"]) == (
        ["[SOS]", *"banana", "[EOS]"],
        ["[SOS]", *"ananab"],
    )
    assert list(said["maps"]) == list(said["scores"]) == SITES
    for site, maps in said["maps"].items():
        weights = np.array(maps)
        n_rows, n_columns = (8 if site == "encoder.0" else 7), (7 if site.endswith("self") else 8)
        assert weights.shape == (3, n_rows, n_columns)
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)
        np.testing.assert_allclose(weights, np.nan_to_num(answer.forced.maps[site]), atol=1e-6)
        assert said["scores"][site].keys() == model.head_scores[site].keys()
        for name, values in said["scores"][site].items():
            assert values == pytest.approx(model.head_scores[site][name].tolist(), abs=1e-6)
    closed = np.array(said["maps"]["decoder.1.cross"])[:, :, [2, 4, 6]] == 0
    assert closed.all(axis=(1, 2)).tolist() == [False, False, answers >= 52]


def test_step_0_is_answered_with_the_untrained_model(command, saved_run, tiny):
    _, lines, _ = command("attend", saved_run[1], "--text", "ox", "--step", "0", "--json")
    state = TrainState.begin(tiny())
    src, tgt_in, _ = state.to_device(state.task.encode(["ox"]))
    with record(state.model) as cache:
        state.model(src, tgt_in)
    for site, maps in json.loads(lines[0])["maps"].items():
        np.testing.assert_allclose(maps, cache.weights[site][0], atol=1e-5)


def test_the_default_step_is_the_last_and_the_default_output_is_one_line_of_text(
    command, saved_run, monkeypatch
):
    view, folder = saved_run
    output = snapshot_model(view.config, view.snapshots[-1], TAKEN).answer("ox").output
    assert output != "xo", "60 steps are too few to be right"
    said = command("attend", folder, "--text", " OX ")
    assert said == (0, [f"step 60: ox -> {output} (wrong; the answer is xo)"], "")
    monkeypatch.setattr("transformer.asking.model.Answer.right", True)
    _, lines, _ = command("attend", folder, "--text", "ox")
    assert lines[0].endswith(" (right)")


def with_another_configuration(path):
    with_facts(path, config={})


def with_a_damaged_byte(path):
    change(path, "UPDATE weights SET data = substr(data, 1, length(data) - 1) || x'7e' WHERE step = 60")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("damage", "text", "message"),
    [
        (Path.unlink, "ox", "{} is no run of Headlight: there is no such file."),
        (
            lambda f: f.write_text(2000 * "{"),
            "ox",
            "{} is damaged or no run of Headlight (file is not a database).",
        ),
        (with_another_configuration, "ox", "The weights of step 60 do not fit this model ("),
        (lambda f: change(f, "DELETE FROM weights"), "ox", "{} holds no weights to ask."),
        (with_a_damaged_byte, "ox", "The weights of step 60 in run.headlight are damaged ("),
        (lambda f: None, "naïve", "Only the letters a to z are in the alphabet, not “ï”. Try naive."),
        (lambda f: None, "", "The word is empty; type one, such as banana."),
        (lambda f: None, "a" * 500, "The word has 500 letters; this run learns up to 5"),
    ],
)
def test_a_bad_file_or_text_gives_exit_code_2_and_one_line(refused, saved_run, damage, text, message):
    _, folder = saved_run
    damage(folder)
    for arguments in (["--text", text], ["--text", text, "--json"]):
        assert refused("attend", folder, *arguments).startswith(message.format(folder))


def test_bad_arguments_give_exit_code_2_and_one_line(refused, tmp_path):
    assert refused("attend", tmp_path).startswith("the following arguments are required: --text (see ")
    assert "invalid int value: 'last'" in refused("attend", tmp_path, "--text", "ox", "--step", "last")


def test_the_curves_of_a_run_are_printed_as_csv_or_written_as_parquet(command, refused, saved_run, tmp_path):
    view, path = saved_run
    code, lines, error = command("curves", path.with_suffix(""))
    assert (code, error, len(lines)) == (0, "", 61)
    losses = [float(line.split(",")[1]) for line in lines[1:]]
    assert losses == view.metrics.column("loss").tolist()
    assert command("curves", path, "--out", tmp_path / "curves.parquet") == (0, [], "")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "curves.parquet"), view.metrics.table())
    assert "neither a .csv nor a .parquet file" in refused("curves", path, "--out", tmp_path / "curves.xls")
