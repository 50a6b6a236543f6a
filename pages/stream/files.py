"""Files that the browser loads from this server: scripts of components, which would otherwise travel with
every message, and plotly.js."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Route
from streamlit import config

FILES: dict[str, Path] = {}
"""Name in the address to the file; nothing else is handed out."""

_LOADER = Path(__file__).with_name("loader.js")
_FOR_GOOD = {"cache-control": "public, max-age=31536000, immutable"}
"""A name never means another content: it has the content's hash in it, or a version."""


@cache
def plotly() -> str:
    """Hand out the plotly.js of the installed plotly package; returns its name."""
    spec = find_spec("plotly")  # without loading it
    assert spec is not None
    assert spec.origin is not None
    name = f"plotly-{version('plotly')}.min.js"
    FILES[name] = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return name


def loading(script: Path) -> str:
    """Hand out a script; returns what a component is given instead: a few lines that load it, named by its
    content."""
    name = f"{script.stem}-{hashlib.sha256(script.read_bytes()).hexdigest()[:10]}.js"
    FILES[name] = script
    return _LOADER.read_text(encoding="utf-8").replace("SCRIPT", name)


async def _file(request: Request) -> FileResponse:
    file = FILES.get(request.path_params["name"])
    if file is None:
        raise HTTPException(404)
    return FileResponse(file, headers=_FOR_GOOD, media_type="text/javascript")


def routes() -> list[Route]:
    """The files by their names, under the server's base path, which Streamlit puts before its own alone."""
    plotly()
    base = (config.get_option("server.baseUrlPath") or "").strip("/")
    under = f"/{base}/files" if base else "/files"
    return [Route(under + "/{name:path}", _file)]  # whatever follows: Streamlit would answer with the app
