"""The programs of docs/your-own-model.md and README.md run, with fewer steps, and record their models."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from transformer.storage.saved import read_run

ROOT = Path(__file__).parents[2]
SHORT = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)[1]
PROGRAMS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/your-own-model.md").read_text(encoding="utf-8"), re.S
)


@pytest.mark.parametrize(
    ("program", "folder", "sites", "columns"),
    [
        (PROGRAMS[0], "reverser", 6, 8),
        (PROGRAMS[1], "gpt", 2, 16),
        (PROGRAMS[2], "bert", 3, 10),
        (PROGRAMS[3], "mirror", 1, 36),
        (SHORT, "mine", 2, 6),
    ],
    ids=["nn.Transformer", "a GPT of one's own", "BERT", "patches of a picture", "README"],
)
def test_each_program_has_at_most_40_lines_and_records_its_heads(
    program, folder, sites, columns, tmp_path, monkeypatch, capfd
):
    assert len(program.splitlines()) <= 40
    short = re.sub(r"\b(300|900)\b", "6", program.replace("301", "7"), count=1)  # fewer steps
    assert short != program
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng():
        exec(compile(short, folder, "exec"), {"__name__": "__main__"})
    assert capfd.readouterr().err == ""
    view = read_run(tmp_path / "runs" / f"{folder}.headlight").view
    assert (view.state, view.step, view.own.problem) == ("finished", 6, "")
    assert len(view.frame.axes) == sites
    assert view.frame.maps[0][list(view.frame.axes)[-1]].shape[1:][-1] == columns
    assert program is SHORT or not any(
        token.isdecimal() for side in view.frame.words[0].sides.values() for token in side
    )
