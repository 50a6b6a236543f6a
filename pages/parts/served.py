"""Files that the browser loads from this server: scripts of components, which would otherwise travel with
every message, and plotly.js."""

from __future__ import annotations

import hashlib
import os
import shutil
from functools import cache
from pathlib import Path

_STATIC = Path(__file__).parents[2] / "static"  # Streamlit serves this folder beside app.py
_LOADER = Path(__file__).with_name("loader.js")


def serve(source: Path, name: str) -> str:
    """Copy a file to where Streamlit serves it, if it is not there; returns its name."""
    if not (_STATIC / name).exists():
        _STATIC.mkdir(exist_ok=True)
        partial = _STATIC / f"{name}.{os.getpid()}"
        shutil.copyfile(source, partial)
        partial.replace(_STATIC / name)
    return name


def loading(script: Path) -> str:
    """What a component is given instead of its script: a few lines that load it, named by its content."""
    return _LOADER.read_text(encoding="utf-8").replace("SCRIPT", _named(script))


@cache
def serve_script(script: Path) -> None:
    """Have the script of a component served; call it where the component is mounted."""
    serve(script, _named(script))


def _named(script: Path) -> str:
    return f"{script.stem}-{hashlib.sha256(script.read_bytes()).hexdigest()[:10]}.js"
