"""Take it away: everything of a run as files, in one menu. Each is made when it is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable

import streamlit as st

from pages.shared import ownership, selection
from pages.shared.plain import plain
from transformer.recording.frame import Frame, sites_of
from transformer.recording.view import RunView
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.runs.watched import Watched
from transformer.storage.brought import Brought


def take_away(run: Watched, word: str) -> None:
    """Draw the menu in the sidebar."""
    view = run.view
    with st.sidebar, st.popover("Take it away", icon=":material/download:", width="stretch", key="take_away"):
        if view.frame is None or len(view.frames) < 2:
            st.caption("Train first: there is nothing to take away yet.")
            return
        word = view.frame.probes[view.frame.row_of(word)].text  # of one that is no probe nothing is recorded
        st.caption(
            f"Of this run up to now, for “{plain(word)}” and the head that is shown large. Page, GIF and "
            "filmstrip say how many of its frames they hold."
        )
        name = f"headlight-seed{view.config.seed}"
        of_word = name + "-" + re.sub(r"\W+", "-", word)[:40].strip("-")
        filmed, written = _film_problem(view, word), _script_problem(view)
        problems = {"export_gif": filmed, "export_strip": filmed, "export_script": written}
        for key, label, file_name, mime, make in (
            ("export_html", "A page with its own slider (HTML)", f"{name}.html", "text/html", _html),
            ("export_gif", "One head learning, for a slide (GIF)", f"{of_word}.gif", "image/gif", _gif),
            ("export_strip", "One head as a filmstrip (PNG)", f"{of_word}.png", "image/png", _strip),
            ("export_csv", "The curves (CSV)", f"{name}.csv", "text/csv", _csv),
            ("export_json", "The step on the screen (JSON)", f"{name}-step.json", "application/json", _json),
            (
                "export_weights",
                "The weights nearest to it (safetensors)",
                f"{name}.safetensors",
                "application/octet-stream",
                _weights,
            ),
            ("export_script", "The experiment as a PyTorch script", f"{name}.py", "text/x-python", _script),
        ):
            st.download_button(
                label,
                data=_later(make, run, selection.on_screen(), word),
                file_name=file_name,
                mime=mime,
                key=key,
                type="tertiary",
                on_click="ignore",
                disabled=problems.get(key) is not None,
                help=problems.get(key),
            )
        private = isinstance(run, Run) and run.brought != Brought() and not ownership.owns(run)
        st.download_button(
            "The whole run, to open in another Headlight (ZIP)",
            data=lambda: REGISTRY.file_of(run),
            file_name=f"{name}-run.zip",  # of what it is when it is pressed, not when the page was drawn
            mime="application/zip",
            key="run_download",
            type="tertiary",
            on_click="ignore",
            disabled=private,
            help="It holds what the run's owner brought: only the owner takes it along." if private else None,
        )
        if any(moment.kind == "intervention" for moment in view.moments):
            st.caption(
                "The script trains the configuration from the start; what was taken away is not in it."
            )


def _later(
    make: Callable[..., str | bytes],
    run: Watched,
    on_screen: selection.OnScreen,
    word: str,
) -> Callable[[], str | bytes]:
    """Makes the file of what the run is when the button is pressed."""

    def made() -> str | bytes:
        view = run.view
        frame = view.frame if on_screen.step is None else view.frame_at(on_screen.step)
        assert frame is not None
        kinds = view.config.model.kinds
        kind = on_screen.kind if on_screen.kind in kinds else kinds[0]
        site, head = selection.large_head(frame, sites_of(frame.axes, kind), on_screen.pinned)
        chosen = on_screen.word if on_screen.word in view.frames.words else word
        return make(view, frame, word=chosen, kind=kind, site=site, head=head)

    return made


# The exports bring torch's neighbours and Pillow, so each is imported when it is needed.


def _film_problem(view: RunView, word: str) -> str | None:
    from transformer.exports.film import film_problem

    return film_problem(view, word)


def _script_problem(view: RunView) -> str | None:
    from transformer.exports.script import script_problem

    return script_problem(view.config)


def _html(view: RunView, frame: Frame, *, word: str, kind: str, site: str, head: int) -> str:
    from transformer.exports.page import html_page

    return html_page(view, word=word, kind=kind, site=site, head=head)


def _gif(view: RunView, frame: Frame, *, word: str, kind: str, site: str, head: int) -> bytes:
    from transformer.exports.film import film_gif

    return film_gif(view, word=word, site=site, head=head)


def _strip(view: RunView, frame: Frame, *, word: str, kind: str, site: str, head: int) -> bytes:
    from transformer.exports.film import filmstrip_png

    return filmstrip_png(view, word=word, site=site, head=head)


def _csv(view: RunView, frame: Frame, *, word: str, kind: str, site: str, head: int) -> str:
    from transformer.exports.tables import curves_csv

    return curves_csv(view)


def _json(view: RunView, frame: Frame, *, word: str, kind: str, site: str, head: int) -> str:
    from transformer.exports.tables import frame_json

    return frame_json(view, frame)


def _weights(view: RunView, frame: Frame, *, word: str, kind: str, site: str, head: int) -> bytes:
    from transformer.exports.weights import weights_file

    snapshot = view.snapshot_at(frame.step)
    assert snapshot is not None
    return weights_file(view.config, snapshot.step, snapshot.weights)


def _script(view: RunView, frame: Frame, *, word: str, kind: str, site: str, head: int) -> str:
    from transformer.exports.script import script

    return script(view.config)
