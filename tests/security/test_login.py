"""Login: with an [auth] section, nothing is shown before the login; without one, there is no login."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.tools.server import ROOT
from tests.pages.conftest import end_all_runs
from tests.security.stranger import run_in_thread, visiting
from tests.serving import start_server

AUTH = {
    "redirect_uri": "http://localhost:8501/oauth2callback",
    "cookie_secret": "a secret of the tests alone",
    "client_id": "headlight",
    "client_secret": "another one",
    "server_metadata_url": "http://localhost:1/.well-known/openid-configuration",
}
PAGES = ["", "ask", "inside", "masks", "data"]


@pytest.fixture
def app():
    """Return a function that opens the app with a given [auth] section in its secrets file."""

    def visit(auth=None, **user):
        at = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60)
        at.user = user
        if auth is not None:
            at.secrets["auth"] = auth
            at.user = {"is_logged_in": False} | user
        at.run()
        assert [error.message for error in at.exception] == []
        return at

    yield visit
    end_all_runs()


def keys(at):
    return {button.key for button in at.button}


def test_without_an_auth_section_the_page_shows_no_login(app):
    at = app()
    assert "run_start" in keys(at)
    assert not {"log_in", "log_out"} & keys(at)


def test_with_an_auth_section_a_visitor_sees_only_the_login_button(app):
    at = app(AUTH)
    assert keys(at) == {"log_in"}
    assert len(at.sidebar) == len(at.number_input) == len(at.get("bidi_component")) == 0


def test_each_provider_in_the_auth_section_has_its_own_button(app):
    own = ("client_id", "client_secret", "server_metadata_url")
    shared = {name: value for name, value in AUTH.items() if name not in own}
    provider = {name: AUTH[name] for name in own}
    at = app(shared | {"client_kwargs": {"prompt": "login"}, "school": provider, "club": provider})
    assert [button.label for button in at.button] == ["Log in with school", "Log in with club"]


def test_a_user_who_has_logged_in_sees_the_page_and_their_name_and_can_log_out(app):
    at = app(AUTH, is_logged_in=True, name="Ann **Other**", email="ann@example.com")
    assert {"run_start", "log_out"} <= keys(at)
    assert "Logged in as Ann **Other**" in [text.value for text in at.text]


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """Address of a fresh server whose secrets file has an [auth] section; its first visits are deep links."""
    secrets = tmp_path_factory.mktemp("secrets") / "secrets.toml"
    secrets.write_text("[auth]\n" + "".join(f"{name} = {json.dumps(v)}\n" for name, v in AUTH.items()))
    server, address = start_server(None, "--secrets.files", str(secrets))
    yield address
    server.terminate()
    server.wait(60)


@pytest.mark.parametrize("page", PAGES[::-1])
def test_without_a_login_a_deep_link_shows_only_the_login_button(asking, page):
    async def look():
        async with visiting(asking, "run=known&owner=token&steps=7", page) as visitor:
            first = set(visitor.keys)
            await visitor.answered(visitor.ask())
            return first | visitor.keys, set(visitor.kinds), visitor.exceptions

    assert run_in_thread(look()) == ({"log_in"}, {"heading", "markdown", "button"}, [])
