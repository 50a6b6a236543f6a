"""A server that shuts down: nothing that its runs have learned is lost, and no run is left in mid-step."""

from __future__ import annotations

import signal
import threading

from tests.runs.conftest import losses_of
from tests.security.stranger import SMALL, run_in_thread, visiting
from tests.serving import start_server
from transformer.runs.training_session import unpack
from transformer.storage.saved import read_run
from transformer.storage.tokens import new_token
from transformer.training.state import TrainState

LONG = f"{SMALL}&steps=100000"


def test_at_shutdown_training_and_queued_runs_are_saved_at_their_step_and_can_be_resumed(
    server, tiny, until, losses
):
    registry, tokens = server(library=True, training=1), [new_token(), new_token()]
    config = tiny(steps=30, evaluate_every=10)
    training, waiting = (registry.draft(config, token=token) for token in tokens)
    training.set_pace(5.0)
    registry.start(training)
    until(lambda: training.view.step > 3)
    registry.start(waiting)
    until(lambda: waiting.view.state == "queued")
    registry.close()
    assert all(run.join(0) for run in (training, waiting))
    assert (training.view.state, waiting.view.state) == ("training", "queued")
    assert waiting.view.step == 0
    for run in (training, waiting):
        saved = read_run(registry.library.path_of(run.id))
        state, _ = unpack(saved)
        assert state.step == saved.view.step == run.view.step
    again, expected = server(library=True), losses(config)
    for run, token in zip((training, waiting), tokens, strict=True):
        back = again.control(run.id, token)
        assert (back.view.state, back.view.step) == ("paused", run.view.step)
        back.set_pace(None)
        back.resume()
        until(lambda back=back: back.view.state == "finished")
        assert losses_of(back) == expected


def test_a_run_started_while_its_model_is_built_is_saved_when_the_server_ends(server, tiny, monkeypatch):
    ended, begin, token = threading.Event(), TrainState.begin, new_token()
    monkeypatch.setattr(TrainState, "begin", lambda *of, **how: ended.wait(30) and begin(*of, **how))
    registry = server(library=True)
    run = registry.draft(tiny(), token=token)
    registry.start(run)
    run.halt()
    ended.set()
    registry.close()
    assert read_run(registry.library.path_of(run.id)).view.step == 0
    back = server(library=True).control(run.id, token)
    assert (back.view.state, back.view.step) == ("paused", 0)


def test_a_server_terminated_while_a_run_trains_exits_cleanly_and_loses_no_step(tmp_path):
    async def watched(address):
        async with visiting(address, LONG) as owner:
            await owner.answered(owner.press("run_start"))
            return (await owner.news_until(lambda now: now["step"] > 20))["step"]

    with (tmp_path / "said").open("wb") as said:
        process, address = start_server(output=said, HEADLIGHT_RUNS=str(tmp_path / "runs"))
        try:
            step = run_in_thread(watched(address))
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, -signal.SIGTERM)
        finally:
            process.kill()
            process.wait()
    said = (tmp_path / "said").read_text()
    assert "start" in said
    for wrong in ("Traceback", "terminate called", "Abort", "Segmentation", "Exception"):
        assert wrong not in said, said
    (path,) = (tmp_path / "runs").iterdir()  # all of the run is in one file
    saved = read_run(path)
    assert saved.can_go_on
    assert saved.view.state == "paused"
    assert saved.view.step >= step
