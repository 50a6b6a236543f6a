"""What `pip install .` installs: the app, runnable from any folder, and the packages of requirements.txt."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_sdist, build_wheel

from benchmarks.tools.server import clean_environment, free_port, until_healthy
from pages.stream.files import files
from transformer.runs.demo import SHIPPED

ROOT = Path(__file__).parents[1]


def named(requirement):
    """Return the name and the version bounds of a requirement."""
    return re.fullmatch(r"([A-Za-z0-9-]+)([=>].*)", requirement.split("#")[0].strip()).groups()


def test_the_package_requires_what_the_requirements_file_installs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = dict(map(named, project["dependencies"] + project["optional-dependencies"]["app"]))
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    installed = dict(named(line) for line in lines if not line.startswith("#"))
    least, pinned = asked.pop("torch"), installed.pop("torch")
    assert asked == installed
    assert pinned.startswith("==" + least.removeprefix(">="))
    assert "streamlit" not in dict(map(named, project["dependencies"]))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the installed wheel and the unpacked sdist."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        wheel, sdist = build_wheel(str(folder)), build_sdist(str(folder))
    zipfile.ZipFile(folder / wheel).extractall(folder / "installed")
    with tarfile.open(folder / sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_wheel_and_sdist_hold_every_file_of_the_app(built):
    tracked = subprocess.run(
        ["git", "ls-files", "app.py", "pages", "transformer", ".streamlit/config.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    (source,) = built.glob("headlight_attention-*/")
    for name in tracked:
        inside = name if name.startswith("transformer/") else f"transformer/_app/{name}"
        assert (built / "installed" / inside).read_bytes() == (ROOT / name).read_bytes()
        assert (source / name).exists()


def test_the_installed_app_opens_a_run_from_any_folder(built, tmp_path):
    path, port = tmp_path / "runs" / "mine.headlight", free_port()
    path.parent.mkdir()
    shutil.copy(SHIPPED, path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    server = subprocess.Popen(
        [sys.executable, "-m", "transformer", "open", str(path.with_suffix("")), "--port", str(port)],
        cwd=elsewhere,
        env=clean_environment() | {"PYTHONPATH": str(built / "installed")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until_healthy(server, f"http://127.0.0.1:{port}")
        assert re.fullmatch(rf"The run: http://localhost:{port}/\?run=[\w-]+\n", server.stdout.readline())
        module = next(name for name in files() if name.endswith("/player/player.js"))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/files/{module}") as answer:
            assert answer.read() == files()[module].read_bytes()
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()
    assert list(elsewhere.iterdir()) == []


def test_a_folder_that_is_no_run_is_refused_in_one_line(tmp_path):
    command = [sys.executable, "-m", "transformer", "open", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert (
        "is a folder. A run is now one file, NAME.headlight; the folders and ZIP files of earlier"
        in done.stderr
    )


def test_without_the_packages_of_the_app_a_command_reports_what_to_install():
    code = "import sys; sys.modules['tqdm'] = None; import transformer.__main__ as it; sys.exit(it.main([]))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "headlight: tqdm is not installed. Install all that the commands need: "
        "pip install 'headlight-attention[app]'\n"
    )
