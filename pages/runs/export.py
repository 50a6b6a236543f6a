"""Take it away: a menu that exports a run as files. Each file is made when its button is pressed."""

from __future__ import annotations

import re
from functools import partial

import streamlit as st

from pages.shared import ownership, selection
from pages.shared.plain import plain
from transformer.exports.fonts import film_problem
from transformer.exports.page import html_page
from transformer.exports.script import script, script_problem
from transformer.exports.tables import curves_csv, curves_parquet, frame_json, weights_file
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY
from transformer.shared.attention_info import sites_of
from transformer.storage.file import SUFFIX

OWN = "Headlight has only the attention of this model, not the model: its training loop has it."


def export(run: AnyRun, word: str) -> None:
    """Draw the menu in the sidebar.

    Args:
        word: the word of the files; the run's first word if it is not tracked.
    """
    view = run.view
    with st.sidebar, st.popover("Take it away", icon=":material/download:", width="stretch", key="take_away"):
        if view.frame is None or len(view.frames) < 2:
            st.caption("Nothing to take away yet; train first.")
            return
        word = view.frame.words[view.frame.row_of(word)].text  # only tracked words are recorded
        st.caption(
            f"This run so far, for “{plain(word)}” and the large head. Page, GIF and filmstrip state how "
            "many frames they hold."
        )
        name = f"headlight-{view.stem}"
        of_word = name + "-" + re.sub(r"\W+", "-", word)[:40].strip("-")
        filmed, written = film_problem(view, word), OWN if view.own else script_problem(view.config)
        problems = {"export_gif": filmed, "export_strip": filmed, "export_script": written}
        if view.own is not None:
            problems["export_weights"] = OWN
        elif not view.snapshots:
            problems["export_weights"] = "No weights of this run are kept."
        binary = "application/octet-stream"
        for key, label, file_name, mime in (
            ("export_html", "A page with its own slider (HTML)", f"{name}.html", "text/html"),
            ("export_gif", "One head learning, for a slide (GIF)", f"{of_word}.gif", "image/gif"),
            ("export_strip", "One head as a filmstrip (PNG)", f"{of_word}.png", "image/png"),
            ("export_csv", "The curves (CSV)", f"{name}.csv", "text/csv"),
            ("export_parquet", "The curves (Parquet)", f"{name}.parquet", binary),
            ("export_json", "The step on the screen (JSON)", f"{name}-step.json", "application/json"),
            ("export_weights", "The nearest weights (safetensors)", f"{name}.safetensors", binary),
            ("export_script", "The experiment as a PyTorch script", f"{name}.py", "text/x-python"),
        ):
            st.download_button(
                label,
                data=partial(_file, key, run, selection.on_screen(), word),
                file_name=file_name,
                mime=mime,
                key=key,
                type="tertiary",
                on_click="ignore",
                disabled=problems.get(key) is not None,
                help=problems.get(key),
            )
        uploads = view.config.train.task == "pairs" or view.config.train.tokenizer == "file"
        private = uploads and ownership.is_anothers(run.id)
        st.download_button(
            "The whole run, to open in another Headlight",
            data=lambda: REGISTRY.file_of(run),  # the run as it is when the button is pressed
            file_name=f"{name}{SUFFIX}",
            mime="application/vnd.sqlite3",
            key="run_download",
            type="tertiary",
            on_click="ignore",
            disabled=private,
            help="It holds the owner's own data; only the owner can download it." if private else None,
        )
        if any(moment.kind == "intervention" for moment in view.moments):
            st.caption("The script trains the configuration from the start, without interventions.")


def _file(what: str, run: AnyRun, on_screen: selection.OnScreen, word: str) -> str | bytes:
    """Make a file from the run and the screen as they are when its button is pressed."""
    view = run.view
    frame = view.frame if on_screen.step is None else view.frame_at(on_screen.step)
    assert frame is not None
    kinds = view.kinds
    kind = on_screen.kind if on_screen.kind in kinds else kinds[0]
    site, head = frame.large_head(sites_of(frame.axes, kind), on_screen.pinned)
    word = on_screen.word if on_screen.word in view.frames.words else word
    match what:
        case "export_html":
            return html_page(view, word=word, site=site, head=head)
        case "export_gif":
            from transformer.exports.film import film_gif  # imports Matplotlib, for which no page waits

            return film_gif(view, word=word, site=site, head=head)
        case "export_strip":
            from transformer.exports.film import filmstrip_png

            return filmstrip_png(view, word=word, site=site, head=head)
        case "export_csv":
            return curves_csv(view)
        case "export_parquet":
            return curves_parquet(view)
        case "export_json":
            return frame_json(view, frame)
        case "export_weights":
            snapshot = view.snapshot_at(frame.step)
            assert snapshot is not None
            return weights_file(view.config, snapshot.step, snapshot.weights)
    return script(view.config)
