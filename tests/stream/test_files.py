"""Files that the browser loads: what the header of a page says of them."""

from __future__ import annotations

import asyncio

from pages.stream import files


def headers_of_a_page():
    """Return the headers of a page of HTML behind the middleware, by name."""
    sent = []

    async def page(scope, receive, send):
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]}
        )
        await send({"type": "http.response.body", "body": b"<p>a page</p>"})

    async def send(message):
        sent.append(message)

    asyncio.run(files.FirstPage(page)({"type": "http"}, None, send))
    return dict(sent[0]["headers"])


def test_a_page_links_to_the_files_only_when_plotly_js_is_compressed(monkeypatch):
    monkeypatch.setattr(files, "_COMPRESSED", {})
    assert b"link" not in headers_of_a_page()
    small = next(name for name in files.files() if name.endswith("/keyring.js"))
    files.compressed(small)
    assert b"link" not in headers_of_a_page()
    files.compressed(files.plotly())
    links = headers_of_a_page()[b"link"].decode()
    assert all(name in links for name in files.files())
