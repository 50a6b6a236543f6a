"""The app behind the proxy of `docs/serving.md`: under a path, with passwords, over a WebSocket."""

from __future__ import annotations

import base64
import http.client
import re
import shlex
import shutil
import socket
import subprocess
import time
from urllib.parse import urlsplit

import pytest

from benchmarks.tools.server import ROOT, free_port
from pages.stream.files import plotly
from tests.browser.conftest import REQUIRED
from tests.browser.watcher import Watcher
from tests.security.stranger import run_in_thread, visiting
from tests.serving import start_server

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
PROXY = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8").split("## Behind a proxy")[1]
OPTIONS = shlex.split(re.search(r"streamlit run app.py (.+)", PROXY).group(1))
BLOCK = re.search(r"```nginx\n(.*?)```", PROXY, re.DOTALL).group(1)
AROUND = """
daemon off;
master_process off;
pid nginx.pid;
events {{ }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    {block}
}}
"""
ANN = {"username": "ann", "password": "of green gables"}
PASSWORD = {"Authorization": "Basic " + base64.b64encode(":".join(ANN.values()).encode()).decode()}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "a" * 22 + "==",
    "Sec-WebSocket-Version": "13",
}


@pytest.fixture(scope="module")
def app():
    """Address of the app itself, meant for the proxy only."""
    server, address = start_server(
        None, *(option.replace("app.example.com", "127.0.0.1") for option in OPTIONS), path="/headlight"
    )
    yield address
    server.terminate()
    server.wait(60)


def until_listening(process, port, said):
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, said.read_text()
        time.sleep(0.01)


@pytest.fixture(scope="module")
def proxy(app, tmp_path_factory):
    """Address of the app through nginx, which runs as an ordinary process in its own folder."""
    if NGINX is None:
        (pytest.fail if REQUIRED else pytest.skip)("no nginx on the PATH; install Debian's nginx-light")
    place, port = tmp_path_factory.mktemp("nginx"), free_port()
    (place / "passwords").write_text("{username}:{{PLAIN}}{password}\n".format(**ANN))
    own = {
        "listen 80;": f"listen 127.0.0.1:{port};",
        "http://app.example.com": f"http://127.0.0.1:{port}",
        "app.example.com": "127.0.0.1",
        "http://127.0.0.1:8501": app.removesuffix("/headlight"),
        "/etc/nginx/headlight.htpasswd": str(place / "passwords"),
    }
    block = BLOCK
    for shown, real in own.items():
        assert shown in block
        block = block.replace(shown, real)
    (place / "nginx.conf").write_text(AROUND.format(block=block))
    with (place / "said").open("wb") as said:
        process = subprocess.Popen([NGINX, "-p", place, "-c", "nginx.conf", "-e", "stderr"], stderr=said)
    until_listening(process, port, place / "said")
    yield f"http://127.0.0.1:{port}/headlight"
    process.terminate()
    process.wait(60)


@pytest.fixture
def visit(proxy, browser):
    """Return a function that opens a browser with the password."""
    opened = []

    def visitor():
        context = browser.new_context(viewport={"width": 1280, "height": 720}, http_credentials=ANN)
        opened.append(Watcher(context.new_page(), proxy))
        opened[-1].page.on("websocket", lambda socket: opened[-1].asked.add(socket.url))
        return opened[-1]

    yield visitor
    for watcher in opened:
        watcher.page.context.close()
        assert watcher.errors == []
        assert watcher.hosts == {urlsplit(proxy).netloc}


def test_maps_are_live_through_the_proxy_and_the_link_of_the_run_goes_through_it_too(visit, proxy):
    owner = visit()
    owner.open("?steps=20000&goal=none&pace=5 steps/s")  # without the trailing slash, which nginx adds
    assert "Logged in as ann" in owner.page.locator(".st-key-who").inner_text()
    owner.click("run_start")
    owner.until(lambda: owner.number("live_map", "step") > 0)
    owner.page.get_by_text("Share a link").click()
    link = owner.page.locator(".st-key-run_link code").inner_text()
    assert link.startswith(f"{proxy}/?run=")
    owner.page.close()
    guest = visit()
    guest.open(link.removeprefix(proxy))
    seen = guest.number("live_map", "step")
    guest.until(lambda: guest.number("live_map", "step") > seen)
    guest.step_by("Home")
    guest.until(lambda: guest.stands_at(0), what="a map of the past, which is fetched")
    guest.choose("word", "banana")
    guest.until(lambda: "“banana”" in guest.plot("live_map", "title()"))
    guest.page.get_by_text("Ask", exact=True).first.click()
    guest.page.wait_for_url(f"{proxy}/ask?**")
    guest.page.wait_for_selector(".st-key-explore_map_figure svg.main-svg")


def asked(address, path, headers, method="GET", body=None):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    try:
        connection.request(method, urlsplit(address).path + path, body, headers)
        answer = connection.getresponse()
        return answer.status, b"" if answer.status == 101 else answer.read()
    finally:
        connection.close()


def test_without_a_password_nothing_is_served(proxy):
    for path in ("/", "/ask", "/_stcore/health", "/_stcore/host-config", f"/files/{plotly()}"):
        for forged in ({}, {"X-Forwarded-User": "ann"}, {"Authorization": "Basic YW5uOg=="}):
            status, body = asked(proxy, path, forged)
            assert status == 401
            assert b"nginx" in body
        assert asked(proxy, path, PASSWORD)[0] == 200
    for path in ("/_stcore/stream", "/stream/a-run/news", "/stream/a-run/index"):
        assert asked(proxy, path, UPGRADE)[0] == 401
    assert asked(proxy, "/_stcore/stream", UPGRADE | PASSWORD)[0] == 101


def test_pages_of_other_sites_and_requests_for_another_host_name_cannot_connect(proxy, app):
    other = {"Origin": "https://elsewhere.example"}
    assert asked(proxy, "/_stcore/stream", UPGRADE | PASSWORD | other)[0] == 403
    own = {"Origin": f"http://{urlsplit(proxy).netloc}"}
    assert asked(proxy, "/_stcore/stream", UPGRADE | PASSWORD | own)[0] == 101
    for address in (proxy, app):
        assert asked(address, "/_stcore/stream", UPGRADE | PASSWORD | {"Host": "elsewhere.example"})[0] == 403


def looked(address, **headers):
    """Return the texts, alerts and widget keys that a connection with these headers receives."""

    async def look():
        async with visiting(address, headers=headers) as visitor:
            return visitor.texts, visitor.alerts, visitor.keys

    return run_in_thread(look())


def test_the_user_name_comes_from_the_proxy_only_and_direct_access_is_refused(proxy, app):
    for forged in ("X-Forwarded-User", "x-forwarded-user", "X_Forwarded_User", "Remote-User"):
        texts, _, keys = looked(proxy, **PASSWORD, **{forged: "the headmistress"})
        assert "Logged in as ann" in texts
        assert "run_start" in keys
    _, alerts, keys = looked(app)
    assert (len(alerts), keys) == (1, set())
    assert alerts[0].startswith("This server is only available through its proxy.")


def test_uploads_are_limited_by_the_app_and_not_by_a_lower_limit_of_the_proxy(proxy):
    """nginx's default limit is 1 MB; here the app refuses before the body arrives: a token is missing."""
    announced = PASSWORD | {"Content-Length": "2000000"}  # announced only: the refusal needs no body
    status, body = asked(proxy, "/_stcore/upload_file/nobody/a-file", announced, "PUT")
    assert (status, b"XSRF" in body) == (403, True)
