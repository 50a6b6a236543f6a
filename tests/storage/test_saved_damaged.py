"""Files of a run that are damaged or of another version: read as far as possible, or refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from tests.conftest import facts_of
from tests.storage.conftest import with_facts
from transformer.errors import InputError
from transformer.recording.metrics import COLUMNS
from transformer.recording.records import scan
from transformer.storage.saved import read_run


def cut_off(path, n_bytes):
    path.write_bytes(path.read_bytes()[:-n_bytes])


def rewritten(path, facts):
    """Write the same arrays with other facts."""
    save_file(load_file(path), path, {"facts": facts})


def damaged(path, record, at):
    """Flip one bit in the body of a record."""
    entry, data = [*scan(path)][record], bytearray(path.read_bytes())
    data[entry.at + at] ^= 1
    path.write_bytes(data)


def refusal(folder):
    with pytest.raises(InputError) as refused:
        read_run(folder)
    return str(refused.value)


@pytest.mark.parametrize("name", ["frames.bin", "weights.bin"])
def test_all_records_before_the_end_of_a_truncated_file_are_read(saved, name):
    view, folder = saved
    entries = [*scan(folder / name)]
    for n_whole in (len(entries) - 1, len(entries) // 2, 0):
        (folder / name).write_bytes((folder / name).read_bytes()[: entries[n_whole].end - 3])
        read = read_run(folder).view
        steps = read.frames.steps if name == "frames.bin" else tuple(one.step for one in read.snapshots)
        assert steps == view.frames.steps[: len(steps)]
        assert len(steps) < len(view.frames) or n_whole == len(entries) - 1
        assert (len(steps) == 0) == (n_whole == 0)
        assert read.metrics.column("step").tolist() == [*range(1, 9)]


def test_only_frames_with_damaged_maps_are_left_out_with_a_warning(saved, caplog):
    view, folder = saved
    chunk = next(i for i, one in enumerate(scan(folder / "frames.bin")) if one.nbytes)
    damaged(folder / "frames.bin", chunk, 5)
    read = read_run(folder).view
    assert len(read.frames) < len(view.frames)
    assert {*read.frames.steps} < {*view.frames.steps}
    assert "frames.bin is damaged at byte " in caplog.text


def test_damaged_weights_are_reported_when_they_are_read(saved):
    _, folder = saved
    damaged(folder / "weights.bin", 4, 100)
    snapshots = read_run(folder).view.snapshots
    assert [one.step for one in snapshots] == [*range(9)]
    with pytest.raises(InputError, match=r"^weights\.bin is damaged at byte [\d,]+\.$"):
        dict(snapshots[4].weights)
    assert snapshots[3].weights.keys() == snapshots[5].weights.keys()
    (folder / "weights.bin").unlink()
    with pytest.raises(InputError, match=r"^weights\.bin cannot be read \(No such file or directory\)\.$"):
        dict(snapshots[3].weights)


def bomb(path):
    """Write ten million empty rows: a quarter of a megabyte on disk, and a gigabyte in memory."""
    part = pa.table({name: pa.nulls(1_000_000, pa.float64()) for name in COLUMNS})
    with pq.ParquetWriter(path, part.schema) as writer:
        for _ in range(10):
            writer.write_table(part)
    assert path.stat().st_size < 300_000


def of_texts(path):
    pq.write_table(pa.table({name: ["one"] * 5 for name in COLUMNS}), path)


def out_of_order(path):
    table = pq.read_table(path)
    pq.write_table(table.take([0, 2, 1]), path)


def with_another_loss(path):
    """Flip one bit of one number, so that it is another valid number."""
    file = pq.ParquetFile(path).metadata.row_group(0).column(COLUMNS.index("loss"))
    data = bytearray(path.read_bytes())
    data[file.dictionary_page_offset + file.total_compressed_size - 1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path: path.write_bytes(b"PAR1 and nothing PAR1"), ""),
        (bomb, "10,000,000 rows in "),
        (of_texts, "its columns hold string"),
        (out_of_order, "its steps are not in order"),
        (with_another_loss, "could not verify page integrity"),
    ],
    ids=["no table", "bomb", "texts", "order", "another number"],
)
def test_a_table_that_cannot_be_read_is_refused_with_the_reason(saved, damage, why):
    _, folder = saved
    damage(folder / "metrics.parquet")
    assert refusal(folder).startswith(f"metrics.parquet of run cannot be read ({why}")


def with_older_training(folder):
    facts = facts_of(folder)
    with_facts(folder, kept=facts["kept"] + 1, state="stopped")


def with_training_of_another(folder):
    with_facts(folder, id="another", state="stopped")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda f: cut_off(f / "training.safetensors", 300), "run/training.safetensors cannot be read ("),
        (
            lambda f: rewritten(f / "training.safetensors", '{"run": {}}'),
            "run/training.safetensors cannot be read (Object missing required field",
        ),
        (with_training_of_another, "run/training.safetensors belongs to another run."),
        (with_older_training, "run/training.safetensors is at step 8, but the run is not."),
    ],
    ids=["cut off", "no facts", "of another run", "older"],
)
def test_without_an_intact_training_state_a_run_is_viewable_and_says_why_it_cannot_go_on(saved, damage, told):
    view, folder = saved
    damage(folder)
    read = read_run(folder)
    assert not read.can_go_on
    assert read.damage.startswith(told)
    assert read.damage.count("training.safetensors") == 1
    assert read.view.step == 8
    assert read.view.frames.steps == view.frames.steps
    assert read.view.metrics.column("loss").tolist() == view.metrics.column("loss").tolist()


def test_a_folder_without_a_run_is_refused(tmp_path):
    assert refusal(tmp_path).startswith(f"{tmp_path} is not a saved run: run.json cannot be read (")


@pytest.mark.parametrize(
    "damage",
    [
        *(
            lambda said, text=text: text
            for text in (b"", b"[]", b'{"format": 3}', b'{"config": {}}', b"\xff")
        ),
        lambda said: b'{"format": 3, "a": ' + 9999 * b"[",
        lambda said: said.replace(b'"warmup_steps"', b'"warm\xedup"'),
    ],
    ids=["empty", "a list", "no configuration", "no format", "no text", "too deep", "a name that is no text"],
)
def test_a_damaged_run_json_is_refused(saved, damage):
    _, folder = saved
    (folder / "run.json").write_bytes(damage((folder / "run.json").read_bytes()))
    assert refusal(folder).startswith(f"{folder} is not a saved run: run.json is damaged (")


def test_a_configuration_with_an_unknown_setting_is_refused(saved):
    _, folder = saved
    config = facts_of(folder)["config"]
    config["model"]["d_modle"] = 12
    with_facts(folder, config=config)
    assert "no setting 'd_modle'; did you mean 'd_model'" in refusal(folder)


@pytest.mark.parametrize("version", [2, "3", None])
def test_another_version_is_refused(saved, version):
    _, folder = saved
    with_facts(folder, format=version)
    assert f"has format {json.dumps(version)}; this version reads format 3" in refusal(folder)
