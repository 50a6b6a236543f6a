"""The examples of a task: training examples, held-out examples, the alignment of one, and descriptions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from pages.player.figure import live_figure
from pages.shared.plain import plain
from transformer.config import TASK_INFO, RunConfig, TrainConfig
from transformer.figures.alignment import Aligned, alignment
from transformer.figures.lengths import length_histogram
from transformer.tasks import PATTERNS, Task
from transformer.tasks.corpus import Corpus, Pair, token_links
from transformer.tasks.writing import CHARACTERS

TRAINED, HELD_OUT = "data_trained", "data_held_out"
"""Keys of the two lists."""
N_TRAINED, N_HELD_OUT = 12, 6
"""Most examples in each list."""
N_SAMPLE = 1000
"""Most training examples from which lengths, patterns and tokens are counted."""
MAX_ALIGNED = 60
"""Most tokens on each side of an alignment; more would be too small to read."""
MAX_LISTED = 120
"""Most characters of each side in a list; a longer text is shortened."""


def sample(corpus: Corpus) -> list[Pair]:
    """Return at most `N_SAMPLE` training examples, always the same ones; cached for the current corpus."""
    kept, pairs = st.session_state.get("data_sample", (None, []))
    if kept is not corpus:
        pairs = _picked(corpus, N_SAMPLE, np.random.default_rng(0))
        st.session_state["data_sample"] = corpus, pairs
    return pairs


def draw_examples(config: RunConfig | None, corpus: Corpus | None, task: Task | None) -> Pair | None:
    """Draw the lists and figures of a task's examples.

    Args:
        config: the settings; None if they are invalid.
        corpus: the examples; None if there are none.
        task: the task with its tokenizers; None if they cannot be built.

    Returns:
        The selected example; None if there are no examples.
    """
    if corpus is None or config is None:
        st.caption("No examples yet.")
        return None
    settings, shown = config.train, _shown(corpus)
    left, right = st.columns([1, 1.6], gap="medium")
    with left:
        _list("Trained on", TRAINED, HELD_OUT, shown)
        _list("Test examples: never used in training", HELD_OUT, TRAINED, shown)
        st.button(
            "Show others",
            key="data_others",
            icon=":material/casino:",
            on_click=_others,
            help="Pick other examples at random for both lists.",
        )
    with right:
        picture = st.container()
        st.markdown(f"{supply(corpus, settings)} {TASK_INFO[settings.task].held_out}")
        if settings.task in PATTERNS:
            _patterns(settings.task, settings.patterns, sample(corpus))
        _lengths(corpus)
    key = TRAINED if st.session_state[HELD_OUT] is None else HELD_OUT
    pair = shown[key][st.session_state[key] or 0]
    with picture:
        _alignment(corpus, task, pair)
    return pair


def _picked(corpus: Corpus, count: int, rng: np.random.Generator) -> list[Pair]:
    """Return `count` random training examples; a finite corpus may have fewer."""
    drawn = corpus.drawn(rng, count)
    if len(drawn) <= count:
        return drawn
    return [drawn[i] for i in rng.choice(len(drawn), count, replace=False)]


def _shown(corpus: Corpus) -> dict[str, list[Pair]]:
    """Return the examples of both lists. They stay until the corpus changes or others are asked for."""
    seed = st.session_state.get("data_seed", 0)
    kept, drawn_by, shown = st.session_state.get("data_shown", (None, 0, {}))
    if kept is not corpus or drawn_by != seed:
        every = corpus.held_out()
        some = np.random.default_rng([seed, 1]).permutation(len(every))[:N_HELD_OUT]
        trained = _picked(corpus, N_TRAINED, np.random.default_rng([seed, 1]))
        shown = {TRAINED: trained, HELD_OUT: [every[i] for i in some]}
        st.session_state["data_shown"] = corpus, seed, shown
        st.session_state[TRAINED], st.session_state[HELD_OUT] = _most_crossed(trained), None
    return shown


def _most_crossed(pairs: Sequence[Pair]) -> int:
    """Return the index of the pair whose alignment crosses most often; 0 if none is aligned."""

    def crossings(pair: Pair) -> int:
        ends = [place for places in pair.links or () for place in places]
        return sum(later < earlier for i, earlier in enumerate(ends) for later in ends[i:])

    return max(range(len(pairs)), key=lambda row: crossings(pairs[row]))


def _others() -> None:
    st.session_state["data_seed"] = st.session_state.get("data_seed", 0) + 1


def _list(label: str, key: str, other: str, shown: dict[str, list[Pair]]) -> None:
    """Draw one list. Only one example of the two lists is selected: the callback clears the other list."""
    st.session_state[key] = st.session_state.get(key)  # Streamlit deletes it on a page without this list
    st.radio(
        label,
        range(len(shown[key])),
        format_func=lambda row: _row(shown[key][row]),
        key=key,
        persist_state="session",
        on_change=lambda: st.session_state.update({other: None}),
        help="Question → answer, and the sentence pattern, if any. The selected example is drawn above.",
    )


def _row(pair: Pair) -> str:
    kind = f" :gray[:small[pattern: {plain(pair.pattern)}]]" if pair.pattern else ""
    return f"{plain(_short(pair.source))} → **{plain(_short(pair.target))}**{kind}"


def _short(text: str) -> str:
    return text if len(text) <= MAX_LISTED else f"{text[: MAX_LISTED - 1]}…"


def aligned(corpus: Corpus, task: Task | None, pair: Pair) -> Aligned | None:
    """Split a pair into the task's tokens, or into the units of its corpus if there is no tokenizer yet.

    Returns:
        The tokens, [SOS] and [EOS] left out, with their links; None where the links are not known.
    """
    if task is None:
        if pair.links is None:
            return None
        source, target = corpus.src.units(pair.source), corpus.tgt.units(pair.target)
        return Aligned(source=source, target=target, links=pair.links)
    src, tgt = task.src_tokenizer, task.tgt_tokenizer
    links = token_links(pair, (corpus.src, src), (corpus.tgt, tgt))
    if links is None:
        return None
    return Aligned(
        source=src.tokens(src.encode([pair.source])[0][1:-1]),
        target=tgt.tokens(tgt.encode([pair.target])[0][1:-1]),
        links=tuple(tuple(place - 1 for place in row) for row in links),  # [SOS] is left out
    )


def _alignment(corpus: Corpus, task: Task | None, pair: Pair) -> None:
    tokens = aligned(corpus, task, pair)
    if tokens is None:
        st.caption(f"**Look for:** {TASK_INFO['pairs'].look_for}")
        return
    if max(len(tokens.source), len(tokens.target)) > MAX_ALIGNED:
        st.info(f"Alignments are drawn for up to {MAX_ALIGNED} tokens; choose a shorter example.")
        return
    side = "test example" if pair.held_out else "trained on"
    with st.container(key="data_alignment"):
        live_figure(
            alignment(tokens, title=f"<b>The source of each token</b> · {side}"),
            key="data_alignment_figure",
            height="170px",
            file_name=f"headlight-alignment-{corpus.name}",
        )
        st.caption(
            "**How to read it:** a line joins each token of the answer (below) to its origin in the "
            "question (above); that of the first is lit. A slanted token or ∅ has no counterpart. Point at a "
            "token to see its lines alone."
        )


def _lengths(corpus: Corpus) -> None:
    pairs = sample(corpus)
    sampled = "" if corpus.size == len(pairs) else "a sample of "
    src, tgt = (
        "characters" if writing.unit == CHARACTERS else "words and punctuation marks"
        for writing in (corpus.src, corpus.tgt)
    )
    with st.container(key="data_lengths"):
        live_figure(
            length_histogram(
                [len(corpus.src.units(pair.source)) for pair in pairs],
                [len(corpus.tgt.units(pair.target)) for pair in pairs],
                unit=(src, tgt),
                title=f"<b>Lengths</b> of {sampled}{len(pairs):,} training examples",
            ),
            key="data_lengths_figure",
            height="230px",
            file_name=f"headlight-lengths-{corpus.name}",
        )


def _patterns(task: str, chosen: Sequence[str] | None, pairs: Sequence[Pair]) -> None:
    """List the sentence patterns of the task that are chosen or occur in these pairs, each with its share and
    what to look for."""
    counts = {name: sum(pair.pattern == name for pair in pairs) for name in PATTERNS[task]}
    lines = [
        f"- **{name}** ({counts[name] / max(1, len(pairs)):.0%}): {look_for}"
        for name, look_for in PATTERNS[task].items()
        if counts[name] or name in (chosen or ())
    ]
    with st.expander(f"{len(lines)} sentence patterns", key="data_patterns"):
        st.markdown("\n".join(lines))


def what_it_is(task: str) -> str:
    """A description of a task, and what to look for in its attention, as Markdown."""
    info = TASK_INFO[task]
    return f"**{info.title}**: {info.examples}. **Look for:** {info.look_for}"


def supply(corpus: Corpus, settings: TrainConfig) -> str:
    """A sentence on the number of training and held-out examples, as Markdown."""
    n_held_out = len(corpus.held_out())
    if corpus.size is not None:
        trained = f"**{corpus.size:,}** training pairs, reshuffled in every epoch"
    elif settings.examples is not None:
        trained = f"**{settings.examples:,}** training examples, generated once"
    else:
        trained = "**Endless** training examples: every batch is generated anew"
    return f"{trained}; **{n_held_out:,}** different test examples, the same in every run."
