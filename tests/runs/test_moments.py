"""Moments of a real run, found at their exact steps."""

from __future__ import annotations

from tests.runs.conftest import TWO_HEADS_OFF, kept_at, moments_of
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.insight import scores


def all_recorded(view):
    """Return whether every moment has a frame and a snapshot at exactly its step."""
    frames, snapshots = ({one.step for one in kept} for kept in (view.frames, view.snapshots))
    return all(moment.step in frames & snapshots for moment in view.moments)


def test_moments_of_a_short_real_run_have_frames_and_weights_at_exactly_their_steps(make_run):
    """The run records only evaluations and moments; it learns words of up to three letters in 200 steps."""
    config = RunConfig(
        model=ModelConfig(n_encoder_layers=1, n_decoder_layers=1, n_heads=2, d_model=32, d_ff=40),
        train=TrainConfig(max_letters=3, batch_size=48, steps=240, warmup_steps=20, evaluate_every=15),
        seed=3,
        device="cpu",
    )
    run = make_run(config, every_step=False)
    run.start()
    run.wait(120.0)
    view = run.view
    assert view.state == "finished"
    kinds = {moment.kind for moment in view.moments}
    assert {"accuracy", "drop", "turned"} <= kinds, view.moments
    assert all_recorded(view)
    assert [moment.step for moment in view.moments] == sorted(moment.step for moment in view.moments)
    reached = {f"{100 * float(mark):g}% of the test words right": s for mark, s in view.first_step_at.items()}
    assert {text: step for step, text in moments_of(view, "accuracy")} == reached
    losses = view.metrics.column("loss")
    for moment in view.moments:
        if moment.kind == "drop":
            before, now = losses[moment.step - 40 : moment.step - 30], losses[moment.step - 10 : moment.step]
            assert before.mean() > 1.2 * now.mean()
    assert any(moment.step % 15 for moment in view.moments), "one must have its frame for itself alone"
    assert any(moment.step > 50 and moment.step % 25 for moment in view.moments), "and one its weights"
    for moment in view.moments:
        if moment.kind == "turned":
            earlier = [frame for frame in view.frames if frame.step < moment.step]
            (now,) = kept_at(view.frames, moment.step)
            assert now.scores[moment.site][moment.head] >= scores.THRESHOLD
            assert all(f.scores[moment.site][moment.head] < scores.THRESHOLD for f in earlier)


def test_a_head_that_passes_the_threshold_at_an_intervention_is_a_moment_too(tiny, make_run, at, monkeypatch):
    run = make_run(tiny(steps=100, evaluate_every=100))
    run.advance(7)
    at(run, "paused", 7)
    assert run.view.moments == ()
    for module in ("insight.moments", "runs.run_recorder"):
        monkeypatch.setattr(f"transformer.{module}.THRESHOLD", 0.0)
    run.intervene(TWO_HEADS_OFF).result(20.0)
    turned = [moment for moment in run.view.moments if moment.kind == "turned"]
    assert {(moment.site, moment.head) for moment in turned} == {
        (site, head) for site in ("decoder.0.cross", "decoder.1.cross") for head in range(3)
    }
    assert {moment.step for moment in turned} == {7}
    assert all_recorded(run.view)
