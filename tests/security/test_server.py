"""A hostile client gains nothing, whatever it sends to the server."""

from __future__ import annotations

import asyncio
import re
import tomllib
from urllib.parse import urljoin

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import InvalidStatus

from benchmarks.tools.server import ROOT
from pages.stream.files import files, loading, plotly
from tests.conftest import facts_of
from tests.security.stranger import SECONDS, SMALL, handshake, http_request, run_in_thread, visiting
from tests.serving import start_server
from transformer.runs.limits import Limits

SERVER = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["server"]
MEGABYTE = 1024 * 1024
SLOW = f"{SMALL}&steps=20000&pace=5 steps/s"
LIMITS = Limits()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder of the server's runs and log."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def app(place):
    """Address of the server."""
    with (place / "said").open("wb") as said:
        many = {"HEADLIGHT_PER_VISITOR": "1000", "HEADLIGHT_KEPT": "1000"}
        server, address = start_server(output=said, HEADLIGHT_RUNS=str(place / "runs"), **many)
        yield address
        server.terminate()
        server.wait(60)


def test_a_page_of_another_site_cannot_connect_and_the_servers_own_can(app):
    assert handshake(app, app) == "accepted"
    for foreign in (
        "https://elsewhere.example",
        "null",
        app.replace("127.0.0.1", "127.0.0.1.elsewhere.example"),
    ):
        with pytest.raises(InvalidStatus, match="403"):
            handshake(app, foreign)


# What all visitors share.


def test_clearing_the_servers_caches_takes_no_run_from_its_owner(app):
    async def clear():
        async with visiting(app, SLOW) as owner, visiting(app) as stranger:
            await owner.answered(owner.press("run_start"))
            await owner.news_until(lambda now: now["step"] > 0)
            await stranger.send(BackMsg(clear_cache=True))
            await stranger.answered(stranger.ask())
            step = (await owner.news_until(lambda now: now["state"] == "training"))["step"]
            await owner.news_until(lambda now: now["step"] > step)
            async with visiting(app, owner.query) as guest:
                assert guest.run == owner.run
                await guest.news_until(lambda now: now["step"] > step + 1)
            await owner.answered(owner.press("run_stop"))
            return [*owner.alerts, *stranger.alerts, *owner.exceptions, *stranger.exceptions]

    assert run_in_thread(clear()) == []


@pytest.mark.parametrize("page", ["", "ask", "inside", "masks", "data"])
def test_a_page_still_works_after_it_has_cleared_the_caches(app, page):
    async def clear():
        async with visiting(app, SMALL, page) as stranger:
            await stranger.answered(stranger.ask())
            await stranger.send(BackMsg(clear_cache=True))
            await stranger.answered(stranger.ask())
            return stranger.exceptions

    assert run_in_thread(clear()) == []


def test_a_returning_client_gets_whole_messages(app):
    async def come_back():
        async with visiting(app, "goal=none&steps=20&device=cpu") as owner:
            await owner.answered(owner.press("run_start"))
            await owner.news_until(lambda now: now["state"] == "finished")
        async with visiting(app, owner.query, "masks") as visitor:
            await visitor.answered(visitor.ask())
        async with visiting(app, visitor.query, "masks", before=visitor) as again:
            await again.answered(again.ask())
            return again.references, again.received

    references, received = run_in_thread(come_back())
    assert references == 0
    assert received > 50_000


# What may be sent.


def upload(address, session, body, token, size=None):
    cookie = {"Cookie": f"_streamlit_xsrf={token}", "X-Xsrftoken": token} if token else {}
    headers = cookie | {"Content-Type": "multipart/form-data; boundary=edge"}
    if size is not None:
        headers["Content-Length"] = str(size)
    return http_request(address, "PUT", f"/_stcore/upload_file/{session}/a-file", body, headers)[0]


def test_only_a_page_of_this_server_can_upload_and_only_up_to_the_limit(app):
    whole = b'--edge\r\nContent-Disposition: form-data; name="a"; filename="a.tsv"\r\n\r\n%b\r\n--edge--\r\n'
    most = SERVER["maxUploadSize"] * MEGABYTE
    _, _, headers = http_request(app, "GET", "/_stcore/health")
    token = headers["Set-Cookie"].partition("_streamlit_xsrf=")[2].partition(";")[0]

    async def session():
        async with visiting(app) as visitor:
            return [
                upload(app, visitor.session, whole % b"cat\tchat", given, size)
                for given, size in (("", None), ("2|forged|forged|1", None), (token, None), (token, most + 1))
            ] + [upload(app, visitor.session, iter([whole % (b"a" * (most + 1))]), token)]  # without its size

    assert run_in_thread(session()) == [403, 403, 204, 413, 413]
    assert upload(app, "nobody", whole % b"cat\tchat", token) == 400


def test_a_message_that_is_too_large_or_malformed_closes_only_its_own_connection(app):
    async def crowd():
        async with visiting(app) as other:
            closed = []
            for message in (b"\0" * (SERVER["maxWidgetStateSize"] * MEGABYTE + 1), b"no protobuf"):
                async with visiting(app) as stranger:
                    await stranger.send(message)
                    await stranger.until(lambda stranger=stranger: not stranger.connected)
                    closed.append(stranger._socket.close_code)
            await other.answered(other.ask())
            return closed, other.connected, other.exceptions

    assert run_in_thread(crowd()) == ([1009, 1002], True, [])


BEYOND = [
    {"steps": {"int_value": 10**9}},
    {"steps": {"int_value": LIMITS.steps + 1}},
    {"steps": {"int_value": -1}, "heads": {"int_value": 0}},
    {"heads": {"int_value": 10**12}, "width": {"int_value": 10**12}},
    {"layers_encoder": {"int_value": 10**6}, "layers_decoder": {"int_value": -(2**62)}},
    {"seed": {"int_value": -(2**62)}, "batch_size": {"int_value": 10**9}},
    {"learning_rate": {"double_value": -1.0}, "dropout": {"double_value": 1e308}},
    {"threads": {"int_value": 10**6}, "goal": {"string_value": "200 %"}, "device": {"string_value": "meta"}},
    {"pace": {"string_value": "1e9 steps/s"}, "step_size": {"int_value": 10**12}},
    {"preset": {"string_value": "\0"}, "recipe": {"string_value": "<script>"}},
    {"task": {"string_value": "../../etc/passwd"}, "topology": {"string_value": "\ud7ff" * 1000}},
]
WRONG_TYPES = [
    {"width": {"double_value": float("nan")}},
    {"steps": {"double_value": float("inf")}},
    {"learning_rate": {"string_value": "fast"}},
    {"batch_size": {"string_array_value": {"data": ["4"]}}},
]


def test_values_beyond_the_limits_break_no_page_and_train_nothing_beyond_them(app, place):
    async def forge():
        errors = []
        for values in [*BEYOND, {"seed": {"int_value": 4711}}]:  # the last can be trained
            async with visiting(app, f"{SMALL}&steps=300&threads=1") as stranger:
                await stranger.set_widgets(**values)
                await stranger.answered(stranger.press("run_start"))
                errors += stranger.exceptions
        async with asyncio.timeout(SECONDS):
            while 4711 not in [config["seed"] for config in trained()]:
                await asyncio.sleep(0.05)
        return errors

    def trained():
        return [facts_of(file)["config"] for file in (place / "runs").glob("*.headlight") if facts_of(file)]

    assert run_in_thread(forge()) == []
    for config in trained():
        assert 0 < config["train"]["steps"] <= LIMITS.steps
        assert 1 <= config["model"]["n_heads"] <= config["model"]["d_model"] <= 1024
        assert max(config["model"]["n_encoder_layers"], config["model"]["n_decoder_layers"]) <= 12


def test_values_of_a_wrong_type_break_only_the_senders_page_which_shows_only_the_kind_of_error(
    app,
):
    async def forge():
        async with visiting(app, SMALL) as other:
            shown = []
            for values in WRONG_TYPES:
                async with visiting(app, SMALL) as stranger:
                    await stranger.set_widgets(**values)
                    shown += stranger.exceptions
            await other.answered(other.ask())
            return shown, other.exceptions

    shown, elsewhere = run_in_thread(forge())
    assert elsewhere == []
    assert {error.type for error in shown} == {"ValueError", "OverflowError", "TypeError"}
    for error in shown:
        assert list(error.stack_trace) == []
        assert "redacted" in error.message
        assert not any(said in str(error) for said in (str(ROOT), "site-packages", "NaN", "fast"))


# What is served.

OUTSIDE = [
    "../app.py",
    "..%2fapp.py",
    "%2e%2e/app.py",
    "%2e%2e%2fapp.py",
    "%252e%252e%252fapp.py",
    "..%5capp.py",
    "..\\app.py",
    "....//app.py",
    "x/../../app.py",
    "%c0%ae%c0%ae/app.py",
    "/app.py",
    f"{ROOT}/app.py",
    f"%2f{str(ROOT)[1:]}/app.py",
    "file://" + f"{ROOT}/app.py",
    "..;/app.py",
    "../app.py%00.js",
    "../.streamlit/config.toml",
    "%2e%2e/.streamlit/config.toml",
    "../runs/",
    ".",
    "..",
]


def test_no_file_is_served_except_those_listed_by_name(app):
    secret = [(ROOT / "app.py").read_bytes(), (ROOT / ".streamlit" / "config.toml").read_bytes()]
    for outside in OUTSIDE:
        for before in (
            "/files/",
            "/static/",
            "/",
            "/media/",
            "/_stcore/bidi-components/",
            "/component/x/",
        ):
            status, body, _ = http_request(app, "GET", before + outside)
            assert not any(part[:60] in body for part in secret), before + outside
            assert before != "/files/" or status in (400, 403, 404), before + outside
    for unknown in ("", "app.py", "loader.js", "live_figure.js", "plotly.min.js", "plotly-0.0.0.min.js"):
        assert http_request(app, "GET", f"/files/{unknown}")[0] == 404, unknown


def test_the_installed_plotly_js_is_served_and_cached_by_the_browser(app):
    status, body, headers = http_request(app, "GET", f"/files/{plotly()}")
    assert (status, body) == (200, files()[plotly()].read_bytes())
    assert headers["cache-control"] == "public, max-age=31536000, immutable"
    assert headers["content-type"].startswith("text/javascript")


def test_every_script_that_a_page_or_another_script_refers_to_is_served(app):
    async def open_():
        async with visiting(app, SMALL) as visitor:
            return visitor.exceptions

    assert run_in_thread(open_()) == []
    for script in ("mounted", "figure", "keyring"):
        (name,) = re.findall(rf"\w+/(?:player/)?{script}\.js", loading(script))
        waiting, read = [name], {}
        while waiting:
            name = waiting.pop()
            status, body, headers = http_request(app, "GET", f"/files/{name}")
            assert (status, body) == (200, files()[name].read_bytes()), name
            assert headers["cache-control"] == "public, max-age=31536000, immutable"
            read[name] = body
            beside = [urljoin(name, one) for one in re.findall(r'from "(\.[./a-z]+\.js)"', body.decode())]
            waiting += [one for one in beside if one not in read]
        assert script != "mounted" or len(read) > 4


def test_the_agent_api_is_off(app):
    for name in ("interact", "mcp"):
        json_ = {"Content-Type": "application/json"}
        status, body, _ = http_request(app, "POST", f"/_stcore/agent/{name}", b"{}", json_)
        assert status >= 400
        assert b"does not serve the agent API" in body


def test_no_error_in_the_log_was_raised_by_the_app(app, place):
    """Streamlit refuses some messages by raising errors of its own; the app's files raise none."""
    blocks = re.split(r"Traceback \(most recent call last\):", (place / "said").read_text())[1:]
    raising = [re.findall(r'^  File "([^"]+)", line', block, re.MULTILINE)[-1] for block in blocks]
    ours = tuple(f"{ROOT}/{name}" for name in ("app.py", "pages/", "transformer/"))  # without a .venv in ROOT
    assert [file for file in raising if file.startswith(ours)] == []
