"""A frame in a file: the same in every field when it is read again, and refused where it is none."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.fitting import with_task
from transformer.interventions import Block, Interventions
from transformer.recording.frame import Axes, Frame, Probe
from transformer.recording.shelf import Shelf
from transformer.recording.stored import Stored, store, stored_facts
from transformer.runs.frames import read_frame, write_frame

P, H, Q, S, T = 2, 3, 4, 7, 5
PROBE = Probe(
    text="naïve “x”",
    answer=None,
    output="a\tb\n\u2028",
    stopped=False,
    src_tokens=("[SOS]", "n", "ï", "", "[EOS]", "[PAD]"),
    tgt_tokens=("[SOS]", "▁a", "貓"),
    expected=("▁a", "", ""),
    predicted=("", "[EOS]", "\\"),
    held_out=True,
    too_long=True,
    too_short=False,
    drawn_at=None,
    looked_up_to=12,
    right=False,
    pieces=("a", " b"),
    wanted=(),
    n_read=3,
    links=None,
)
OTHER = replace(
    PROBE,
    text="ox",
    answer="xo",
    held_out=False,
    too_long=False,
    too_short=True,
    drawn_at=3,
    right=True,
    wanted=("x", "o"),
    links=((2,), (), (0, 1)),
)


def some(*shape, dtype=np.float32):
    return np.random.default_rng(math.prod(shape)).random(shape).astype(dtype)


FRAME = Frame(
    step=1_234_567,
    seconds=0.1 + 0.2,
    loss=1e-300,
    exact=(3, 200),
    exact_step=1_234_560,
    probes=(PROBE, OTHER),
    axes={
        "encoder.0": Axes(query="src", key="src", writes=False, causal=False, padding=True),
        "decoder.0.cross": Axes(query="tgt", key="src", writes=True, causal=False, padding=False),
        "decoder.0.self": Axes(query="tgt", key="tgt", writes=True, causal=True, padding=True),
    },
    maps={
        "decoder.0.self": some(P, H, Q, T, dtype=np.float16),
        "encoder.0": some(P, H, S, S, dtype=np.float16),
        "decoder.0.cross": some(P, H, T, S, dtype=np.float16),
    },
    head_scores={
        "encoder.0": {"entropy": some(H), "diagonal": some(H)},
        "decoder.0.cross": {"mirror": some(H), "entropy": some(H), "gold": some(H), "focus": some(H)},
        "decoder.0.self": {"entropy": some(H, dtype=np.float64), "first": np.full(H, np.nan)},
    },
    clearest=("decoder.0.cross", 2),
    aim="gold",
    by_length={5: (1, 2), 3: (0, 7)},
    held_out_loss=2.5,
    free_loss=7.0,
    token_accuracy=1.0,
    bleu=0.0,
    chrf=33.3,
    samples=(("the cat", "le chat"), ("a dog", "")),
    interventions=Interventions(
        ablated=(("decoder.0.self", 2), ("encoder.0", 0)),
        blocked=(
            Block(site="encoder.0", head=1, row=2, column=3, token="[EOS]"),
            Block(site="decoder.0.cross"),
        ),
        masks=(("causal", False), ("padding", True)),
    ),
)
BARE = replace(
    FRAME,
    loss=None,
    exact=None,
    by_length={},
    held_out_loss=None,
    free_loss=None,
    token_accuracy=None,
    bleu=None,
    chrf=None,
    samples=(),
    interventions=Interventions(),
)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "frames").mkdir()
    return tmp_path / "frames" / "000003.safetensors"


@pytest.fixture
def again(path):
    """A frame, written and read."""

    def written_and_read(frame):
        write_frame(path, frame)
        return read_frame(path)

    return written_and_read


@pytest.mark.parametrize("frame", [FRAME, BARE], ids=["with everything", "with nothing that may be missing"])
def test_a_frame_comes_back_in_every_field(again, frame, plain):
    assert plain(again(frame)) == plain(frame)


def test_no_field_is_at_its_default_in_what_is_tested_here():
    """A field that somebody adds is to be tested too."""
    for thing in (FRAME, *FRAME.interventions.blocked[:1], FRAME.interventions):
        for one in fields(thing):
            assert getattr(thing, one.name) != one.default, one.name
    for one in fields(Probe):
        assert getattr(PROBE, one.name) != getattr(OTHER, one.name) or one.name in (
            "output",
            "stopped",
            "src_tokens",
            "tgt_tokens",
            "expected",
            "predicted",
            "looked_up_to",
            "pieces",
            "n_read",
        )


def test_a_frame_whose_maps_lie_on_the_shelf_comes_back_with_them(again, plain):
    assert plain(again(FRAME.shelved(Shelf()))) == plain(FRAME)


TASKS = {
    "reverse": {"topology": "encoder-only"},
    "sort": {"topology": "decoder-only", "mask_fill": "-1e9"},
    "dates": {},
    "en-fr": {"tokenizer": "words"},
    "numbers": {"topology": "decoder-only"},
}


@pytest.mark.parametrize("task", TASKS)
def test_the_frames_of_a_run_come_back_in_every_field(tiny, make_run, again, task, plain):
    """With what a person took away, and with a word of their own whose answer nobody may know."""
    config = with_task(tiny(n_heads=4), task)
    config = config.with_changes(
        d_model=12, n_heads=3, d_ff=10, steps=6, evaluate_every=3, batch_size=6, **TASKS[task]
    )
    run = make_run(config)
    assert run.advance(3).wait(30)
    assert run.wait(60)
    site = run.view.frame.clearest[0]
    run.intervene(Interventions(ablated=((site, 1),), blocked=(Block(site=site, head=0, token="[EOS]"),)))
    run.switch_mask("padding", False)
    assert run.advance(2).wait(30)
    assert run.wait(60)
    run.close()
    run.join()
    assert [frame.step for frame in run.view.frames][:4] == [0, 1, 2, 3]
    for frame in run.view.frames:
        read = again(frame)
        assert plain(read) == plain(frame)
        for row, probe in enumerate(frame.probes):
            np.testing.assert_array_equal(read.map(row, site), frame.map(row, site))
            assert read.row_of(probe.text) == frame.row_of(probe.text)
        assert (read.best, read.clearest_score) == (frame.best, frame.clearest_score)
    assert run.view.frame.interventions.masks == (("padding", False),)
    assert bool(run.view.frame.samples) == (task == "en-fr")


# What is none.


def without(things, name):
    return {key: value for key, value in things.items() if key != name}


MISFITS = {
    "maps of a site are missing": {"maps": without(FRAME.maps, "encoder.0")},
    "maps of other numbers": {"maps": {**FRAME.maps, "encoder.0": some(P, H, S, S)}},
    "maps without heads": {"maps": {**FRAME.maps, "encoder.0": some(P, S, S, dtype=np.float16)}},
    "maps of fewer words": {"maps": {**FRAME.maps, "encoder.0": some(1, H, S, S, dtype=np.float16)}},
    "maps with too few rows": {"maps": {**FRAME.maps, "encoder.0": some(P, H, 5, S, dtype=np.float16)}},
    "maps with too few columns": {"maps": {**FRAME.maps, "encoder.0": some(P, H, S, 5, dtype=np.float16)}},
    "maps of fewer heads": {"maps": {**FRAME.maps, "encoder.0": some(P, 2, S, S, dtype=np.float16)}},
    "scores of a site are missing": {"head_scores": without(FRAME.head_scores, "decoder.0.self")},
    "scores without the entropy": {"head_scores": {**FRAME.head_scores, "encoder.0": {"diagonal": some(H)}}},
    "scores of fewer heads": {"head_scores": {**FRAME.head_scores, "encoder.0": {"entropy": some(2)}}},
    "a table for a score": {"head_scores": {**FRAME.head_scores, "encoder.0": {"entropy": some(H, 1)}}},
    "an aim without scores": {"aim": "mirrors"},
    "a site that is not there": {"clearest": ("decoder.1.cross", 0)},
    "a head that is not there": {"clearest": ("encoder.0", 3)},
    "a head before the first": {"clearest": ("encoder.0", -1)},
    "more right than asked": {"exact": (201, 200)},
    "right of nobody asked": {"exact": (0, 0)},
    "a length of which nothing was asked": {"by_length": {3: (0, 0)}},
    "no site": {"axes": {}},
    "a site of no side": {
        "axes": {**FRAME.axes, "encoder.0": replace(FRAME.axes["encoder.0"], query="up", key="up")}
    },
    "no words": {"probes": (), "maps": {site: maps[:0] for site, maps in FRAME.maps.items()}},
}


@pytest.mark.parametrize("misfit", MISFITS, ids=str)
def test_a_frame_whose_parts_do_not_fit_each_other_is_refused(path, misfit):
    write_frame(path, replace(FRAME, **MISFITS[misfit]))
    with pytest.raises(InputError, match=r"^frames/000003\.safetensors is no frame \("):
        read_frame(path)


FACTS = {
    "no step": lambda facts: facts.pop("step"),
    "a word for a step": lambda facts: facts.update(step="three"),
    "half a step": lambda facts: facts.update(step=3.5),
    "no number of seconds": lambda facts: facts.update(seconds=None),
    "one number for two": lambda facts: facts.update(exact=[3]),
    "a word of no kind": lambda facts: facts["probes"].append("ox"),
    "a word without its tokens": lambda facts: facts["probes"][0].pop("src_tokens"),
    "a token that is none": lambda facts: facts["probes"][0]["src_tokens"].append(7),
    "an axis that says too little": lambda facts: facts["axes"]["encoder.0"].pop("causal"),
    "a head that is half one": lambda facts: facts.update(clearest=["encoder.0", 0.5]),
    "a block that is none": lambda facts: facts["interventions"]["blocked"].append({"site": 3}),
    "a length that is no number": lambda facts: facts.update(by_length={"long": [1, 2]}),
}


@pytest.mark.parametrize("fact", FACTS, ids=str)
def test_a_fact_of_another_kind_is_refused(path, fact):
    write_frame(path, FRAME)
    facts = json.loads(stored_facts(path))
    FACTS[fact](facts)
    store(path, dict(Stored(path)), json.dumps(facts))
    with pytest.raises(InputError, match=r"^frames/000003\.safetensors cannot be read \("):
        read_frame(path)


@pytest.mark.parametrize("facts", ["", "[]", "null", "{", "\ufffd", 9999 * "["], ids=ascii)
def test_facts_that_are_none_are_refused(path, facts):
    write_frame(path, FRAME)
    store(path, dict(Stored(path)), facts)
    with pytest.raises(InputError, match=r"^frames/000003\.safetensors cannot be read \("):
        read_frame(path)


def test_what_is_missing_is_said(path):
    write_frame(path, FRAME)
    facts = json.loads(stored_facts(path))
    del facts["aim"], facts["step"]
    store(path, dict(Stored(path)), json.dumps(facts))
    with pytest.raises(InputError) as told:
        read_frame(path)
    assert str(told.value) == "frames/000003.safetensors cannot be read (nothing is said of aim, step)."


def test_what_a_later_version_may_add_is_passed_over(path, plain):
    write_frame(path, FRAME)
    facts = json.loads(stored_facts(path)) | {"mood": "good"}
    store(path, {**Stored(path), "moods/a": np.ones(1)}, json.dumps(facts))
    assert plain(read_frame(path)) == plain(FRAME)
