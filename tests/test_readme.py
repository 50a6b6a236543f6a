"""The README and `docs/` match the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
ROOMS = DOCS["how-it-is-built.md"].split("## The rooms")[1].split("\n## ")[0]
FOLDERS = sorted(
    {
        f"{path.parent.relative_to(ROOT).as_posix()}/"
        for room in ("pages", "transformer", "benchmarks")
        for path in (ROOT / room).rglob("*.py")
    }
    - {"pages/", "transformer/"}
)


def test_every_path_in_the_table_of_rooms_exists():
    for name in re.findall(r"`([^`]+)`", ROOMS):
        assert (ROOT / name).exists(), name


def test_the_table_of_rooms_names_every_folder_and_every_page():
    pages = {f"pages/{path.name}" for path in (ROOT / "pages").glob("*.py")}
    assert {name for name in (*FOLDERS, *pages) if f"`{name}`" not in ROOMS} == set()


def test_the_ci_script_runs_the_two_test_commands_of_the_readme():
    install, run = re.search(r"```\n(pip install -r requirements-dev.txt) && (\S+)\n```", README).groups()
    (in_browser,) = re.findall(r"```\n(pytest -m browser)\n```", README)
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert install in gate.replace("--quiet ", "")
    assert gate.splitlines()[-2:] == [run, f"HEADLIGHT_REQUIRE_BROWSER=1 {in_browser}"]
    assert "set -euo pipefail" in gate  # either command fails the gate


def test_browser_tests_and_slow_tests_run_only_with_their_commands_in_the_readme():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
        "ini_options"
    ]
    assert settings["addopts"][-2:] == [
        "-m",
        "not browser and not slow",
    ]  # the last -m counts: a command may override it
    assert any(marker.startswith("slow: ") for marker in settings["markers"])
    assert "`pytest -m slow`" in README.split("## What you will see")[0]


@pytest.mark.parametrize("name", ["README.md", *(f"docs/{name}" for name in DOCS)])
def test_every_link_leads_to_a_file_and_every_picture_is_a_png(name):
    page = ROOT / name
    for picture, place in re.findall(
        r"(!?)\[[^\]]+\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")
    ):
        content = (page.parent / place).read_bytes()
        assert content.startswith(b"\x89PNG") or not picture


def test_the_python_example_matches_its_comments():
    code = re.search(r"```python\n(.*?)```", DOCS["command-line.md"], re.DOTALL).group(1)
    names: dict[str, object] = {}
    exec(code.replace("RunConfig(seed=0)", "RunConfig(seed=0).with_changes(steps=2)"), names)
    assert names["weights"].shape == (2, 4, 7, 8)
    assert names["weights"][0].sum(axis=-1) == pytest.approx(1.0, abs=1e-5)
