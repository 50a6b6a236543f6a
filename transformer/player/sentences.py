"""Sentences about a run and its frames, made from their numbers, most of them as HTML."""

from __future__ import annotations

import html
import math
import re
from itertools import accumulate
from typing import Any

from transformer.config import TASK_INFO
from transformer.insight.moments import Moment
from transformer.insight.names import TARGET_SCORES, head_name, without_prefix
from transformer.insight.narrator import narrate, narrate_any
from transformer.insight.scores import THRESHOLD
from transformer.recording.frame import LEAST_CHANGE, Frame, RecordedWord
from transformer.recording.view import FAILED, FINISHED, IDLE, RECORDED, TRAINING, RunView
from transformer.shared.attention_info import is_own
from transformer.shared.evaluation import N_LIVE

MAINLY, HARDLY = 0.6, 0.3
"""From which share on a head goes by place or by token, and below which by neither."""
ROOM = 140
"""Letters of a text that fit into the headline of an untrained model, at 1280×720."""
STATE_SIGNS = {
    "idle": "○",
    "queued": "◌",
    "training": "●",
    "paused": "❚❚",
    "finished": "✔",
    "stopped": "■",
    "failed": "✖",
    "recorded": "▷",
}


def status_line(view: RunView, place: tuple[int, int] | None = None) -> str:
    """The state of a run, then, as far as they apply: place in line, speed and time left, seconds of
    computing, recording interval. The step is not in it: the player shows it in large type.

    Args:
        place: (place in line, number of runs or races that wait); None if the run does not wait.
    """
    parts = [f"{STATE_SIGNS[view.state]} <b>{view.state}</b>"]
    if view.state == FINISHED and view.own is None:
        goal = view.config.train.goal
        early = view.step < view.planned and goal is not None
        how = f"goal reached ({goal:.0%} right)" if early else "all steps done"
        parts[0] += _detail(how)
    if place is not None:
        parts.append(f"waiting: place {place[0]:,} of {place[1]:,}")
    if view.state == TRAINING:
        if view.steps_per_second:
            digits = 0 if view.pace is None else 1
            parts.append(f"{view.steps_per_second:.{digits}f} steps/s")
        if view.seconds_left is not None and view.own is None:
            parts.append(f"at most {rounded(view.seconds_left)} left")
    elif view.seconds and view.state != RECORDED:  # those of a recording are of another machine
        parts.append(f"{view.seconds:.1f} s of computing")
    every = _detail(f"1 step in {view.every:,} recorded") if view.every > 1 else ""
    return f"{' · '.join(parts)}{every}"


def _detail(text: str) -> str:
    """A part of the status line that full screen has no room for."""
    return f"<span class='detail'> · {text}</span>"


def in_line(place: tuple[int, int], slots: int) -> str:
    """The place of a run in the queue for training, in a sentence.

    Args:
        place: (place in line, number of runs or races that wait).
        slots: number of runs or races that the server trains at a time.
    """
    return (
        f"<b>Waiting: place {place[0]:,} of {place[1]:,}.</b> This server trains {slots:,} at a time; this "
        "run goes on by itself when it is its turn."
    )


def failure(view: RunView) -> str:
    """Why a run has failed, even where nothing was recorded of it."""
    return f"<b>The run failed.</b> {html.escape(view.reason)}"


def rounded(seconds: float) -> str:
    """A duration in the unit that fits it: seconds, steps of 5 s or minutes, rounded up; or tenths of hours,
    rounded to the nearest."""
    if seconds <= 10:
        return f"{max(math.ceil(seconds), 1)} s"
    if seconds <= 90:
        return f"{5 * math.ceil(seconds / 5)} s"
    if seconds <= 5400:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 360) / 10:.1f} h"


def headline(view: RunView, frame: Frame, look_for: str) -> str:
    """What is going on, in a few sentences, from the numbers of the run.

    Args:
        look_for: what to look for in a run with these settings; said before training.
    """
    if view.state == FAILED:
        return failure(view)
    switched = without_masks(frame)
    if frame.step == 0 and view.state == IDLE:
        sentence = switched if view.interventions.masks else look_for  # the user switched a mask
        return f"<b>Untrained model.</b> Press <b>Start</b> to train it. {_begin(sentence)}"
    if switched and (view.turned_at is None or "causal mask" in switched):
        now = switched
    else:
        now = f"{_clearest(frame)}{_since(view, frame)}{f' {switched}' if switched else ''}"
    if view.state == RECORDED:
        return f"<b>A recording.</b> Press <b>Start</b> to train this model now. {now}"
    # Of a finished run, the status line and the numbers say the reason.
    return f"{now} {html.escape(view.reason)}" if view.reason and view.state != FINISHED else now


def _begin(text: str) -> str:
    """As many sentences of a text as fit into the headline, at least the first."""
    sentences = re.split(r"(?<=\.) ", text)
    n = sum(length <= ROOM for length in accumulate(len(one) + 1 for one in sentences))
    return " ".join(sentences[: max(n, 1)])


def link_to_head(site: str, head: int, name: str) -> str:
    """A head's name as a button that shows the head; a player that already shows this head writes the name as
    plain text.

    Args:
        head: counted from 0.
    """
    return f'<button type="button" data-head="{site}.{head + 1}">{html.escape(name)}</button>'


def moment_said(moment: Moment) -> str:
    """The event of a moment; the head that it names at its beginning is a link to that head."""
    named = re.match(r".*?head \d+", moment.text)
    if moment.site is None or moment.head is None or named is None:
        return html.escape(moment.text)
    return link_to_head(moment.site, moment.head, named[0]) + html.escape(moment.text[named.end() :])


def _clearest(frame: Frame) -> str:
    """What the clearest head does, or that no head has a clear pattern; then `_most_needed`."""
    (site, head), score, goal = frame.clearest, frame.clearest_score, TARGET_SCORES[frame.target_score]
    name = head_name(without_prefix(site, frame.axes), head)
    if score < THRESHOLD:
        score = min(score, THRESHOLD - 0.01)  # 49.7% is not the 50% that is needed
        return (
            f"<b>No head {goal.does}.</b> The closest, {link_to_head(site, head, name)}, puts {score:.0%} of "
            f"its attention on {goal.target}; {THRESHOLD:.0%}, half of it, would be clear."
            f"{_most_needed(frame)}"
        )
    link = link_to_head(site, head, name if is_own(frame.axes) else name.capitalize())
    return (
        f"<b>{link} {goal.does}:</b> {score:.0%} of its attention is on {goal.target}."
        f"{_goes_by(frame)}{_most_needed(frame)}"
    )


def _goes_by(frame: Frame) -> str:
    """Whether the clearest head finds its target by place, by token, or by neither alone; empty where that is
    not clear, or not measured."""
    site, head = frame.clearest
    scores = frame.head_scores[site]
    if "place" not in scores:
        return ""
    place, token = float(scores["place"][head]), float(scores["token"][head])
    noun = "letter" if frame.target_score == "mirror" else "token"
    it, its = TARGET_SCORES[frame.target_score].pronouns
    if place >= MAINLY and token < MAINLY:
        return f" It finds {it} by {its} place, whatever {noun} stands there."
    if token >= MAINLY and place < MAINLY:
        return f" It finds {it} by the {noun}, wherever it stands."
    if max(place, token) < HARDLY:
        return f" It finds {it} neither by place nor by {noun} alone."
    return ""


def _most_needed(frame: Frame) -> str:
    """A sentence about the head without which a measured number changes most; empty if none was measured, or
    every change is below `LEAST_CHANGE`."""
    ablations = frame.ablations
    if ablations is None or not ablations.needed:
        return ""
    site, head = ablations.needed[0]
    link = link_to_head(site, head, head_name(without_prefix(site, frame.axes), head))
    when = "" if ablations.step == frame.step else f" (at step {ablations.step:,})"
    change = change_text(ablations.changes[site][head])
    return f" Most needed: {link}; without it, {ablations.name} is {change}{when}."


def change_text(change: float) -> str:
    """How much higher or lower a number is; empty if that is not known (NaN)."""
    if change != change:
        return ""
    size = f"{abs(change):.2g}" if abs(change) >= LEAST_CHANGE else f"less than {LEAST_CHANGE:g}"
    return f"{size} {'lower' if change < 0 else 'higher'}"


def _since(view: RunView, frame: Frame) -> str:
    """At which step the clearest head got a clear pattern; empty if that is no moment of the run, and for an
    own model."""
    steps = [moment.step for moment in view.moments if (moment.site, moment.head) == frame.clearest]
    if not steps or view.own is not None:  # a head of an own model may have taken a role instead
        return ""
    holds = frame.clearest_score >= THRESHOLD
    return f" It first did so at step {steps[0]:,}." if holds else f" It did so at step {steps[0]:,}."


def unlearned(word: str) -> str:
    """The sentence for a word, or a mean map, that the recording on the first page does not contain."""
    return (
        f"<b>Untrained.</b> “{html.escape(word)}” is shown for your own model, which has not been trained. "
        "Press <b>Start</b>. The recording shows the other words."
    )


def looking_back(frame: Frame) -> str:
    """What the maps of a step show, and a sentence for each mask that differs from what the topology needs.
    Shown for a past step, and at LIVE while the run trains."""
    sentence = _clearest(frame)
    switched = without_masks(frame)
    return f"{sentence} {switched}" if switched else sentence


def words_right(frame: Frame, task: str) -> str:
    """The number of right answers to held-out examples at the frame's evaluation; the style sheet sets it in
    large type."""
    things, evaluation = TASK_INFO[task].plural, frame.evaluation
    sampled = " (a sample)" if evaluation.live is None and evaluation.total == N_LIVE else ""
    return (
        f"<div class='hl-right' title='{things} that training never uses, asked at step {evaluation.step:,}'>"
        f"<b>{evaluation.right:,}</b> of {evaluation.total:,}"
        f"<small>test {things} right{sampled}</small></div>"
    )


def narration(frame: Frame, word: str, site: str, head: int) -> str:
    """A sentence about one head and one word, from its numbers; empty if the frame lacks either, or the word
    names a mean map."""
    row = next((i for i, one in enumerate(frame.words) if one.text == word and not one.n_words), None)
    if row is None or site not in frame.axes or not 0 <= head < frame.n_heads(site):
        return ""
    tracked, axes = frame.words[row], frame.axes[site]
    if axes.group:
        rows, columns = tracked.tokens(axes.query), tracked.tokens(axes.key)
        return html.escape(narrate_any(frame.map(row, site)[head], rows, columns), quote=False)
    sentence = narrate(
        frame.map(row, site)[head],
        axes.kind,
        tracked.tokens(axes.query),
        tracked.tokens(axes.key),
        **counts(tracked, frame.target_score),
    )
    return html.escape(sentence, quote=False)


def counts(read: RecordedWord, target_score: str) -> dict[str, Any]:
    """Arguments of `narrate`: the number of tokens of the question; unless the score is mirror, also that of
    the answer, and the gold alignment (None if unknown)."""
    if target_score == "mirror":
        return {"n_letters": read.n_read}
    return {"n_letters": read.n_read, "n_answer": read.n_written, "links": read.links}


def without_masks(frame: Frame) -> str:
    """One sentence for each mask that differs from what the topology needs; empty if none differs, and for an
    own model."""
    own = next((axes for axes in frame.axes.values() if axes.writes and axes.query == axes.key), None)
    sentences: list[str] = []
    if own is None:  # an own model, whose masks are unknown
        return ""
    if own.kind != "encoder" and not own.causal:
        sentences.append(_reading_ahead(frame))
    if own.kind == "encoder" and own.causal:
        sentences.append(
            f"<b>Causal mask on an encoder:</b> no {_token(frame)} sees those behind it"
            + (
                ", but the answer begins with the last one: that cannot be known."
                if frame.target_score == "mirror"
                else "."
            )
        )
    if not own.padding:
        sentences.append(_looking_at_padding(frame))
    return " ".join(sentences)


def _token(frame: Frame) -> str:
    """What a token is called, by the score of the task."""
    return "letter" if frame.target_score == "mirror" else "token"


def _reading_ahead(frame: Frame) -> str:
    evaluation, token = frame.evaluation, _token(frame)
    examples = "words" if token == "letter" else "answers"
    return (
        f"<b>No causal mask:</b> a row may read the {token} that it is to write. Given the right answer to "
        f"read, {evaluation.token_accuracy:.0%} of the {token}s come out right; writing on its own, the "
        f"model gets {evaluation.right:,} of {evaluation.total:,} {examples}."
    )


def _looking_at_padding(frame: Frame) -> str:
    row = frame.row_of(min((one.text for one in frame.asked), key=len))  # it has most padding
    shares = {
        (site, head): float(share)
        for site in frame.axes
        for head, share in enumerate(frame.on_padding(row, site))
    }
    site, head = max(shares, key=lambda one: shares[one])
    link = link_to_head(site, head, head_name(site, head))
    return (
        f"<b>No padding mask:</b> in “{html.escape(frame.words[row].text)}”, at step {frame.step:,}, [PAD] "
        f"gets {sum(shares.values()) / len(shares):.0%} of all attention, and {shares[site, head]:.0%} of "
        f"that of {link}. What it writes depends on it, so words are filled up as in "
        "training."
    )
