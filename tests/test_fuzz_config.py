"""Any text given as a configuration is valid and within the limits, or quickly refused with an InputError."""

from __future__ import annotations

import json
import resource
import time

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.fuzzing import profile, with_odd_value
from transformer.config import KINDS_OF, LETTER_TASKS, TASKS, TOKENIZERS, RunConfig
from transformer.config.recipes import RECIPES, recipe_config
from transformer.config.tasks import with_task
from transformer.errors import InputError
from transformer.runs.limits import Limits
from transformer.tasks import resolved

EXAMPLES, MANY = 40, 5000
SECONDS = 5.0
"""Maximum CPU time: the slowest case builds a byte-pair vocabulary from a task's examples."""
MEGABYTES = 300

MOSTLY_LETTERS = st.sampled_from([*LETTER_TASKS * 8, *TASKS])
"""Mostly letter tasks: generating the sentences of a grammar takes half a second."""
SIZES = st.sampled_from([1, 2, 3, 4, 8, 12, 16, 32, 60, 64, 100, 128, 512, 1000, 1024, 4096, 100_000])
SHARES = st.sampled_from([0, 0.1, 0.5, 0.9, 0.99, 1, 1e-9, float("nan"), float("inf"), -float("inf"), -1])
LONG_SHOWN = pytest.mark.filterwarnings("ignore:Generating overly large repr")
"""Ignores the warning of Hypothesis that a failing text of 70 kB is too long to show."""
LONG_TEXTS = [
    "[" * 100_000,
    '{"a":' * 100_000,
    "9" * 100_000,
    '"' + "a" * 10**6 + '"',
    "\ufeff{}",
    "NaN",
    "null",
]


@st.composite
def documents(draw):
    """A configuration as plain values, all of them valid in about half of the draws."""
    config = recipe_config(
        draw(st.sampled_from(sorted(RECIPES))),
        draw(st.sampled_from(sorted(KINDS_OF))),
        published=draw(st.booleans()),
    )
    document = with_task(config, draw(MOSTLY_LETTERS)).to_dict()
    model, train = document["model"], document["train"]
    sizes = "steps batch_size max_letters vocabulary min_frequency shift adjectives examples"
    choices = [
        *(
            (model, name, SIZES)
            for name in ("n_encoder_layers", "n_decoder_layers", "n_heads", "d_model", "d_ff")
        ),
        *((train, name, SIZES) for name in (*sizes.split(), "beam_width")),
        *(
            (train, name, SHARES)
            for name in ("learning_rate", "label_smoothing", "goal", "clip", "weight_decay")
        ),
        (model, "dropout", SHARES),
        (train, "tokenizer", st.sampled_from(TOKENIZERS)),
        (train, "pairs", st.sampled_from(["../../etc/passwd", "/dev/zero", "0" * 64])),
        (train, "tokenizer_file", st.sampled_from(["../../etc/passwd", "/dev/zero", "0" * 64])),
        (train, "patterns", st.sampled_from([[], ["x"], [[]], ["svo"] * 10_000])),
    ]
    for group, name, values in draw(st.lists(st.sampled_from(choices), max_size=3)):
        group[name] = draw(values)
    for _ in range(draw(st.sampled_from([0, 0, 1, 3]))):
        document = with_odd_value(document, draw)
    return document


@st.composite
def configurations(draw):
    """A configuration as text, or text that is no configuration."""
    how = draw(st.sampled_from(["whole", "whole", "whole", "whole", "damaged", "long", "random"]))
    event(how)
    if how == "long":
        return draw(st.sampled_from(LONG_TEXTS))
    if how == "random":
        return draw(st.text(max_size=200))
    text = json.dumps(draw(documents()))
    if how == "damaged":
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.text(max_size=3)) + text[at + draw(st.integers(0, 9)) :]
    return text


def read(text):
    """Return the configuration, resolved for its task and within the limits of a server.

    Raises:
        InputError: the configuration cannot be used.
    """
    config = resolved(RunConfig.from_json(text))
    Limits().check(config)
    return config


def check(text):
    """Return whether a text was read or refused; fail if this took too long or too much memory."""
    began, most = time.thread_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    config, refusal = None, ""
    try:
        config = read(text)
    except InputError as error:
        refusal = str(error)
    assert time.thread_time() - began < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < MEGABYTES * 1024
    if config is None:
        assert 0 < len(refusal) < 2000
        return "refused"
    assert RunConfig.from_json(config.to_json()) == config
    return "read"


@LONG_SHOWN
@profile(EXAMPLES)
@given(configurations())
def test_any_text_is_a_configuration_within_the_limits_or_refused(text):
    event(check(text))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@LONG_SHOWN
@profile(MANY)
@given(configurations())
def test_many_texts_are_configurations_within_the_limits_or_refused(text):
    event(check(text))


@pytest.mark.parametrize("text", LONG_TEXTS, ids=lambda text: text[:6])
def test_long_or_deep_text_that_is_no_configuration_is_refused(text):
    assert check(text) == "refused"


def test_the_default_configuration_is_valid():
    assert read(RunConfig().to_json()).model.max_len == 26
