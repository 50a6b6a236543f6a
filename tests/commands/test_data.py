"""`data` and `--pairs`: examples with their alignment, and a summary of the pairs in a file."""

from __future__ import annotations

import json

import pytest

from tests.conftest import change
from transformer.config import TASKS, TrainConfig
from transformer.tasks import corpus_of


@pytest.fixture
def pairs_file(tmp_path):
    """A hundred pairs, one of them twice, and a line that is not a pair."""
    digits = "zero one two three four five six seven eight nine".split()
    chiffres = "zéro un deux trois quatre cinq six sept huit neuf".split()
    lines = [
        f"{digits[i // 10]} and {digits[i % 10]}\t{chiffres[i // 10]} et {chiffres[i % 10]}"
        for i in range(100)
    ]
    path = tmp_path / "numbers.tsv"
    path.write_text("\n".join([*lines, lines[0], "no translation here"]), encoding="utf-8")
    return path


@pytest.mark.parametrize("task", TASKS[:-1])
def test_every_task_prints_the_requested_number_of_examples_one_line_each(command, task):
    code, lines, error = command("data", "--task", task, "--n", "7", "--seed", "3", "--json")
    assert (code, error, len(lines)) == (0, "", 7)
    corpus = corpus_of(TrainConfig(task=task))
    for line in map(json.loads, lines):
        assert corpus.find(line["source"]).target == line["target"]
        assert len(line["links"]) == len(line["target_units"])
        assert all(0 <= place < len(line["source_units"]) for places in line["links"] for place in places)
        assert not line["held_out"]


def test_a_seed_reproduces_its_examples_and_another_seed_gives_others(command):
    shown = [
        command("data", "--task", "en-fr", "--n", "5", "--seed", seed, "--json")[1] for seed in (0, 1, 0)
    ]
    assert shown[0] == shown[2] != shown[1]


def test_the_text_output_shows_each_word_beside_its_source_tokens(command):
    _, lines, _ = command("data", "--task", "zh-en", "--n", "1", "--held-out")
    assert lines[0] == "纽约是一座城市  →  New York is a city"
    assert lines[1].strip() == "New ← 纽 约 · York ← 纽 约 · is ← 是 · a ← 一 · city ← 城 市"


def test_the_pairs_of_a_file_are_counted_in_one_line(command, pairs_file):
    code, lines, _ = command("data", "--pairs", pairs_file, "--json")
    (line,) = lines
    assert code == 0
    assert json.loads(line) == {
        "format": "TSV, 2 columns",
        "pairs_read": 100,
        "pairs_skipped": {"a repeated pair": 1, "a different format than most lines": 1},
    }


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"<!DOCTYPE html><html><body>go\tva</body></html>", "HTML"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "UTF-8"),
        (b"only one column\n" * 40, "one column"),
        (b"", "empty"),
    ],
)
def test_a_file_without_pairs_gives_exit_code_2_and_one_line(refused, tmp_path, content, found):
    path = tmp_path / "something"
    path.write_bytes(content)
    for arguments in (("data", "--pairs", path, "--json"), ("train", "--pairs", path)):
        error = refused(*arguments)
        assert found in error
        assert "xpected" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data", "--task", "en-de"), "invalid choice"),
        (("data",), "one of the arguments --task --pairs is required"),
        (("data", "--task", "copy", "--n", "0"), "0 examples cannot be drawn; choose from 1"),
        (("data", "--task", "copy", "--seed", "-1"), "seed=-1 cannot be used"),
        (("data", "--pairs", "/nowhere/at/all.tsv"), "cannot be read (No such file or directory)"),
        (("train", "--most", "5"), "give --pairs FILE"),
        (("train", "--set", "shift"), "write it as NAME=VALUE"),
        (("train", "--set", "shft=3"), "did you mean 'shift'?"),
        (("train", "--task", "caesar", "--set", "shift=26"), "shift=26 is outside 1 to 25"),
        (
            ("train", "--task", "zh-en", "--topology", "encoder-only"),
            "choose encoder-decoder or decoder-only",
        ),
        (("train", "--task", "pairs"), "There are no pairs yet"),
        (("train", "--task", "reverse", "--tensorboard"), "give --out FILE"),
    ],
)
def test_bad_arguments_give_exit_code_2_and_one_line(refused, arguments, message):
    assert message in refused(*arguments)


def test_own_pairs_are_trained_saved_in_the_file_and_read_from_there(command, pairs_file, tmp_path):
    folder = tmp_path / "run"
    code, lines, _ = command(
        *("train", "--pairs", pairs_file, "--steps", "3", "--set", "d_model=8", "--set", "n_heads=2"),
        *("--most", "80", "--json", "--out", folder),
    )
    said = json.loads(lines[-1])
    assert code == 0
    assert (said["task"], said["pairs_read"], said["pairs_used"], said["pairs_skipped"]) == (
        "pairs",
        100,
        80,
        2,
    )
    assert said["mirror"] is said["alignment_mass"] is None
    assert 0 <= said["bleu"] <= 100
    assert 0 <= said["chrf"] <= 100
    code, lines, error = command("attend", folder, "--text", "Nine and NINE", "--json")
    assert (code, error) == (0, "")
    assert json.loads(lines[0])["src_tokens"] == ["[SOS]", "nine", "and", "nine", "[EOS]"]
    change(folder.with_suffix(".headlight"), "UPDATE fact SET value = x'00' WHERE name = 'pairs'")
    code, _, error = command("attend", folder, "--text", "nine and nine")
    assert code == 2
    assert "damaged" in error


def test_a_tokenizer_file_is_used_and_kept_in_the_file(command, tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    backend = Tokenizer(models.WordLevel({"<unk>": 0, "the": 1, "cat": 2, "sees": 3}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    path, folder = tmp_path / "own.json", tmp_path / "run"
    path.write_text(backend.to_str(), encoding="utf-8")
    few = ("--set", "d_model=8", "--set", "n_heads=2", "--set", 'patterns=["svo"]')
    code, lines, _ = command(
        *("train", "--task", "en-fr", "--tokenizer", path, "--steps", "2", *few, "--json", "--out", folder)
    )
    assert code == 2, "the French side has none of these words"
    both = Tokenizer.from_str(backend.to_str())
    both.add_tokens(["le", "chat", "voit", "la"])
    path.write_text(both.to_str(), encoding="utf-8")
    code, lines, _ = command(
        *("train", "--task", "en-fr", "--tokenizer", path, "--steps", "2", *few, "--json", "--out", folder)
    )
    assert code == 0
    code, lines, _ = command("attend", folder, "--text", "the dog sees the cat", "--json")
    assert code == 0
    assert json.loads(lines[0])["src_tokens"] == ["[SOS]", "the", "[UNK]", "sees", "the", "cat", "[EOS]"]


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_a_sentence_is_split_by_the_requested_kind_of_tokenizer(command, tmp_path, kind):
    folder = tmp_path / "run"
    code, lines, _ = command(
        *("train", "--task", "en-it", "--tokenizer", kind, "--steps", "1", "--set", "d_model=8"),
        *("--set", "n_heads=2", "--json", "--out", folder),
    )
    assert code == 0
    assert 0 <= json.loads(lines[-1])["alignment_mass"] <= 1
    _, lines, _ = command("attend", folder, "--text", "the cat sees the city", "--json")
    tokens = json.loads(lines[0])["src_tokens"][1:-1]
    assert "".join(tokens).replace("␣", " ").strip() == "the cat sees the city"
    assert (len(tokens) == 21) is (kind == "characters")


def test_the_curves_of_a_run_can_be_read_in_the_format_of_tensorboard(command, tmp_path):
    folder = tmp_path / "run"
    code, _, _ = command(
        *("train", "--task", "copy", "--steps", "4", "--set", "evaluate_every=2", "--tensorboard"),
        *("--out", folder),
    )
    assert code == 0
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import masked_crc32c

    (path,) = (tmp_path / "run.tensorboard").glob("events.*")
    data, found = path.read_bytes(), {}
    while data:  # a record is a length, its checksum, an event, and its checksum
        length = int.from_bytes(data[:8], "little")
        assert int.from_bytes(data[8:12], "little") == masked_crc32c(data[:8])
        event = Event.FromString(data[12 : 12 + length])
        for value in event.summary.value:
            found.setdefault(value.tag, []).append(event.step)
        data = data[16 + length :]
    assert found["loss/training"] == [1, 2, 3, 4]
    assert found["accuracy/exact"] == [2, 4]
    assert "translation/bleu" not in found
    assert any(tag.startswith("gold/decoder.1.cross") for tag in found)
