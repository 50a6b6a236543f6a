"""`Watch` as the last expression of a cell in JupyterLab; skipped where JupyterLab is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchmarks.tools.server import ROOT, free_port, until_healthy
from tests.browser.conftest import new_page

CELL = """
import torch
from torch import nn
from transformer import Watch

model = nn.Transformer(16, 4, 2, 2, 16, batch_first=True)
optimizer = torch.optim.Adam(model.parameters())
pair = torch.randn(1, 6, 16), torch.randn(1, 5, 16)
watch = Watch(model, {"six": pair}, "mine", tokens={"six": {"encoder*": "abcdef"}}, share=0.5)
for step in range(1, 21):
    loss = ((model(*pair) - pair[1]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    watch.record(step, loss=loss.item())
watch
"""
FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTERLAB_WORKSPACES_DIR")  # not those of the person who runs this


@pytest.fixture
def notebook(tmp_path):
    """Address of a notebook in JupyterLab whose only cell trains and shows a watched model."""
    pytest.importorskip("jupyterlab")
    cell = {
        "cell_type": "code",
        "id": "a",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": CELL,
    }
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content = {"cells": [cell], "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "own.ipynb").write_text(json.dumps(content))
    port = free_port()
    options = [
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        "--IdentityProvider.token=",
        f"--notebook-dir={tmp_path}",
    ]
    lab = subprocess.Popen(
        [sys.executable, "-m", "jupyter", "lab", *options],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | {name: str(tmp_path / name) for name in FOLDERS},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        until_healthy(lab, address, "/api")
        yield f"{address}/lab/tree/own.ipynb"
    finally:
        lab.terminate()
        lab.wait(60)


def test_the_last_expression_of_a_cell_shows_every_step_of_a_watched_model(notebook, browser):
    page = new_page(browser)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(notebook)
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()  # the kernel is there
    page.locator(".jp-Notebook .jp-Cell .cm-content").click()
    page.keyboard.press("Control+Enter")
    frame = page.frame_locator(".jp-OutputArea iframe")
    shown = frame.locator(".st-key-live_map .map")
    frame.locator(".st-key-live_map .map[data-step='20']").wait_for()
    frame.locator(".st-key-kind button").first.click()  # the encoder, whose tokens are given
    frame.locator(".st-key-live_map .map[data-site^='encoder']").wait_for()
    assert shown.evaluate("(map) => map.picture.columns.join('')") == "abcdef"
    frame.locator(".time-slider > input").focus()
    page.keyboard.press("Home")
    frame.locator(".st-key-live_map .map[data-step='1']").wait_for()
    assert errors == []
    page.context.close()
