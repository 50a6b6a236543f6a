"""From text to tokens: any text as both sides read it, and the two vocabularies."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

import streamlit as st

from pages.own_data.examples import sample
from transformer.tasks import Task
from transformer.tasks.corpus import Pair
from transformer.tasks.tokenizer import SPECIALS, TextTokenizer
from transformer.tasks.writing import Writing

MOST_CHARACTERS = 500
"""Maximum length of a text that is shown as tokens."""
_CSS = """<style>
.hl-chips { line-height: 1; margin: .1rem 0 .5rem; }
.hl-chips span { display: inline-block; text-align: center; vertical-align: top; margin: 0 .18rem .25rem 0;
  padding: .2rem .38rem; border: 1px solid rgba(128, 128, 128, .45); border-radius: .35rem;
  background: rgba(128, 128, 128, .12); }
.hl-chips b { display: block; font: 500 1.12rem/1.25 var(--st-code-font, monospace); white-space: pre; }
.hl-chips small { font-size: var(--hl-small); opacity: .75; }
.hl-chips .special { background: none; }
.hl-chips .special b { font-size: var(--hl-small); line-height: 1.65; opacity: .75; }
.hl-chips .unknown { border: 2px dashed currentColor; background: none; }
.hl-chips .unknown b { font-style: italic; text-decoration: line-through; }
</style>"""


def draw_tokens(task: Task | None, example: Pair | None) -> None:
    """Draw the text box, the tokens of its text or of the example, and the vocabularies.

    Args:
        task: the task with its tokenizers; None if they cannot be built.
        example: the example that is shown while the box is empty.
    """
    st.html(_CSS)
    typed = st.text_input(
        "A text as tokens",
        key="data_text",
        max_chars=MOST_CHARACTERS,
        placeholder="type any text; empty: the example above",
        persist_state="session",
        help=f"Up to {MOST_CHARACTERS} characters, shown as each side reads them.",
    )
    if task is None:
        st.caption("No tokens yet.")
        return
    typed = (typed or "")[:MOST_CHARACTERS]
    corpus = task.corpus
    same = task.src_tokenizer is task.tgt_tokenizer
    if typed and same:
        _row("As question or answer", typed, corpus.src, task.src_tokenizer)
    else:
        _row("As a question", typed or (example.source if example else ""), corpus.src, task.src_tokenizer)
        _row("As an answer", typed or (example.target if example else ""), corpus.tgt, task.tgt_tokenizer)
    st.caption(
        "**How to read it:** each box is a token with its id. Dashed and struck through: not in the "
        "vocabulary, so the model reads **[UNK]**. ␣ is a space inside a token; [SOS] and [EOS] mark the "
        "start and the end."
    )
    _vocabularies(task, same)


def _row(side: str, text: str, writing: Writing, tokenizer: TextTokenizer) -> None:
    """Draw a text as the tokens of one side with their ids; an unknown token as written in the text, if each
    token has a place there."""
    text = writing.clean(text)
    ids = tokenizer.encode([text])[0]
    names, spans = tokenizer.tokens(ids), tokenizer.spans(text)
    each_has_a_span = len(spans) == len(ids) - 2  # all but [SOS] and [EOS]
    cells, n_unknown = [], 0
    for place, (number, name) in enumerate(zip(ids, names, strict=True)):
        kind, below = "special" if name in SPECIALS else "", str(number)
        if number == tokenizer.unk_id and each_has_a_span:
            begin, end = spans[place - 1]
            kind, below, name = "unknown", f"[UNK] {number}", text[begin:end].strip() or name
            n_unknown += 1
        cells.append(f'<span class="{kind}"><b>{html.escape(name)}</b><small>{below}</small></span>')
    n = len(ids) - 2
    counted = f"{n} token{'' if n == 1 else 's'}" + (f", **{n_unknown} unknown**" if n_unknown else "")
    counted += ", between [SOS] and [EOS]"
    st.markdown(f"{side}: {counted}")
    st.html(f'<div class="hl-chips">{"".join(cells)}</div>')


def _vocabularies(task: Task, same: bool) -> None:
    """Draw the vocabulary of each side, or the one that both share, as searchable tables."""
    pairs = sample(task.corpus)
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if same:
        sides = [("Vocabulary of both sides", task.src_tokenizer, sources + targets)]
    else:
        sides = [
            ("Vocabulary of questions", task.src_tokenizer, sources),
            ("Vocabulary of answers", task.tgt_tokenizer, targets),
        ]
    for column, (name, tokenizer, texts) in zip(st.columns(2, gap="small"), sides, strict=False):
        with column:
            _vocabulary(name, tokenizer, texts, len(pairs))


def _vocabulary(name: str, tokenizer: TextTokenizer, texts: Sequence[str], n_examples: int) -> None:
    st.markdown(f"**{name}: {tokenizer.size - len(SPECIALS):,} tokens** and {len(SPECIALS)} special ones")
    times = Counter(number for ids in tokenizer.encode(texts) for number in ids)
    ids = list(range(tokenizer.size))
    st.dataframe(
        {"token": list(tokenizer.tokens(ids)), "id": ids, "times": [times[i] for i in ids]},
        hide_index=True,
        height=248,
        width="stretch",
        column_config={
            "times": st.column_config.NumberColumn(
                "times", help=f"Occurrences in {n_examples:,} training examples.", format="%d"
            )
        },
        alt=f"{name}: token, id, and occurrences in {n_examples:,} training examples.",
    )
