"""Files that the browser loads from this server: the player's modules, other scripts, and plotly.js."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def _folder_of(package: str) -> Path:
    spec = find_spec(package)  # without loading it
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


_PAGES = Path(__file__).parents[1]
PLAYER = _folder_of("transformer") / "player" / "browser"
_SCRIPTS = {path.relative_to(PLAYER).as_posix(): path for path in PLAYER.rglob("*.js")} | {
    path.name: path for path in (_PAGES / "runs").glob("*/*.js")
}
_LOADER = Path(__file__).with_name("loader.js")
_TITLE = b"<title>Streamlit</title>"
_SCRIPT = b"<script>" + Path(__file__).with_name("connection.js").read_bytes() + b"</script>"
_CHANGED = (b"content-encoding", b"content-length", b"etag", b"last-modified")
"""Headers of the first page that are wrong once the script is added. With the last two, a browser might keep
the page without the script."""
_MOST = 20_000
"""Bytes; the compressed first page has fewer."""
_FOR_GOOD = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
"""Headers for caching for a year: a name holds a hash of the content or a version, so the content of a name
never changes."""


@cache
def files() -> dict[str, Path]:
    """The path of each file, by its name in the address; no others are served. The player's modules are in
    the same folders there as on disk, so that they can import each other."""
    content = hashlib.sha256(b"".join(path.read_bytes() for path in _SCRIPTS.values())).hexdigest()[:10]
    return {f"{content}/{name}": path for name, path in _SCRIPTS.items()} | {
        plotly(): _folder_of("plotly") / "package_data" / "plotly.min.js"
    }


@cache
def plotly() -> str:
    """The name in the address of plotly.js, with the version of the installed plotly package."""
    return f"plotly-{version('plotly')}.min.js"


def loading(script: str) -> str:
    """JavaScript that loads the script of a component from an address with a hash of all scripts."""
    address = next(name for name in files() if name.endswith(f"/{script}.js"))
    # What a player imports is requested together with it, not after it.
    drawn = [] if script in ("keyring", "before") else files()
    early = [["preload" if name == plotly() else "modulepreload", name] for name in drawn if name != address]
    loader = _LOADER.read_text(encoding="utf-8")
    return loader.replace("SCRIPT", address).replace("PRELOADED", json.dumps(early))


def styles(*names: str) -> str:
    """Style sheets of the player, such as "model/model", one after the other."""
    return "".join((PLAYER / f"{name}.css").read_text(encoding="utf-8") for name in names)


_COMPRESSED: dict[str, bytes] = {}
"""What `compressed` has returned, by name."""


def compressed(name: str) -> bytes:
    """A file compressed with gzip, as most browsers request it; cached."""
    if name not in _COMPRESSED:
        _COMPRESSED[name] = gzip.compress(files()[name].read_bytes(), 6)
    return _COMPRESSED[name]


async def file(request: Request) -> Response:
    """Handle a request for one of the files.

    Raises:
        HTTPException: with status 404, if there is no file of this name.
    """
    name = request.path_params["name"]
    if name not in files():
        raise HTTPException(404)
    squeezed = "gzip" in request.headers.get("accept-encoding", "")
    content = await asyncio.to_thread(compressed if squeezed else _plain, name)
    headers = _FOR_GOOD | {"content-encoding": "gzip" if squeezed else "identity"}
    return Response(content, media_type="text/javascript", headers=headers)


def _plain(name: str) -> bytes:
    return files()[name].read_bytes()


class FirstPage:
    """Middleware that adds a script to the app's first page, and a header with links to every page of HTML.

    The script tells the visitor when no WebSocket opens. With the links, browsers load all files of `files`,
    such as the player's modules and plotly.js, together with the page. The links are left out until a file is
    compressed, usually plotly.js: otherwise a newly started server would answer later.
    """

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        """
        Args:
            base: base path of the server, such as "/headlight".
        """
        self._app = app
        kinds = ((name, "preload; as=script" if name == plotly() else "modulepreload") for name in files())
        self._links = ", ".join(f"<{base}/files/{name}>; rel={kind}" for name, kind in kinds).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun: Message | None = None

        async def with_additions(message: Message) -> None:
            nonlocal begun
            headers = message.get("headers", ())
            if any(name == b"content-type" and value.startswith(b"text/html") for name, value in headers):
                begun = message  # sent with its content, whose length changes
                return
            if begun is not None:
                await send(self._completed(begun, message))
                begun = None
            await send(message)

        with suppress(ClientDisconnect):  # an upload that was broken off: nobody waits for an answer
            await self._app(scope, receive, with_additions if scope["type"] == "http" else send)

    def _completed(self, begun: Message, message: Message) -> Message:
        """The first message of a response of HTML, with links. If `message`, the content, is the app's first
        page, the script is added to it.
        """
        headers, body = list(begun["headers"]), message.get("body", b"")
        if (b"content-encoding", b"gzip") in headers and len(body) < _MOST and not message.get("more_body"):
            body = gzip.decompress(body)
        if _TITLE in body:
            message["body"] = body = body.replace(_TITLE, _TITLE + _SCRIPT)
            headers = [(name, value) for name, value in headers if name not in _CHANGED]
            headers.append((b"content-length", str(len(body)).encode()))
        if plotly() in _COMPRESSED:
            headers.append((b"link", self._links))
        return {**begun, "headers": headers}
