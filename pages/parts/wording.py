"""What the pages say in words, from the numbers of the run: heads, states, the sentence of the moment."""

from __future__ import annotations

import html
from typing import Any

from pages.parts.mask_words import without_masks
from pages.parts.plain import plain
from transformer.config import RunConfig
from transformer.insight.names import examples_of, head_name
from transformer.insight.scores import AIMS, THRESHOLD, TURNED
from transformer.recording.frame import Frame, Probe
from transformer.recording.view import FAILED, IDLE, RECORDED, RunView
from transformer.runs.watched import Watched

KIND_NAMES = {
    "cross": "Cross",
    "encoder": "Encoder",
    "decoder": "Decoder",
    "sequence": "Question and answer",
}
COUNTS = {
    "mirror": f"at {THRESHOLD:.0%} it counts as anti-diagonal",
    "gold": f"at {THRESHOLD:.0%} it counts as reading what it writes",
    "focus": f"from {THRESHOLD:.0%} on it has made up its mind",
}
READS = {
    "mirror": "it reads the word backwards",
    "gold": "it reads what its row is about to write",
    "focus": "each row has its token",
}
FOUND = {"mirror": "anti-diagonal", "gold": "the alignment", "focus": "in focus"}
"""What a head has found, by the score that a task aims at."""
SETTING_NAMES = {
    "n_encoder_layers": "encoder layers",
    "n_decoder_layers": "decoder layers",
    "n_heads": "heads",
    "d_model": "width",
    "max_letters": "longest word",
    "batch_size": "batch",
    "learning_rate": "learning rate",
    "label_smoothing": "label smoothing",
    "n_layers": "layers",
    "causal_mask": "causal mask",
    "padding_mask": "padding mask",
    "norm_placement": "place of the norm",
    "score_scale": "scores divided by",
    "to_words": "from digits to words",
    "cuda_graphs": "CUDA graphs",
    "tokenizer": "tokens",
    "vocabulary": "most tokens",
    "min_frequency": "least frequency",
    "decoding": "written by",
    "beam_width": "beams",
    "length_penalty": "length penalty",
}
WIDE = 12
"""A longer sentence stands in a line of its own."""
_AS_THEY_ARE = (
    *("topology", "steps", "seed", "goal", "dropout", "device", "task", "shift", "language", "digits"),
    *("patterns", "adjectives", "pairs", "precision", "threads"),
)
"""Settings that are called by their own names."""
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


def changed(run: Watched, config: RunConfig | None) -> dict[str, tuple[Any, Any]]:
    """Settings that differ from a run's, without the preset's name and what follows from another setting."""
    if config is None:
        return {}
    changes = run.config.differences(config)
    changes.pop("recipe", None)
    changes.pop("published", None)
    if "d_model" in changes:
        changes.pop("d_ff", None)
    for follows in ("max_len", "src_vocab_size", "tgt_vocab_size"):  # from the task; a saved run has them
        changes.pop(follows, None)
    if config.train.learning_rate == run.view.learning_rate:
        changes.pop("learning_rate", None)  # it has been taken over in mid-run
    return changes


def differences(changes: dict[str, tuple[Any, Any]]) -> str:
    """Settings that differ, as "width 32 → 64, seed 0 → 3"."""
    named = [
        f"{SETTING_NAMES.get(name, name)} {_short(before)} → {_short(after)}"
        for name, (before, after) in changes.items()
        if name in SETTING_NAMES or name in _AS_THEY_ARE
    ]
    others = len(changes) - len(named)
    more = [f"{others} more of the recipe's"] if others else []
    return ", ".join([*named, *more])


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def status_line(view: RunView, place: tuple[int, int] | None = None) -> str:
    """State, place in line, step, speed, time left."""
    parts = [f"{STATE_SIGNS[view.state]} **{view.state}**", f"step **{view.step:,}** / {view.planned:,}"]
    if place is not None:
        parts.insert(1, waiting(place))
    if view.state == "training":
        if view.steps_per_second:
            parts.append(
                f"{view.steps_per_second:.0f} steps/s"
                if view.pace is None
                else f"{view.steps_per_second:.1f} steps/s"
            )
        if view.seconds_left is not None:
            parts.append(f"at most {view.seconds_left:.0f} s left")
    elif view.seconds and view.state != RECORDED:  # on another machine
        parts.append(f"{view.seconds:.1f} s of training")
    if view.pace is not None:
        parts.append(f"pace {view.pace:g} steps/s")
    if view.every > 1:
        parts.append(f"1 in {view.every:,} steps recorded")
    return " · ".join(parts)


def waiting(place: tuple[int, int]) -> str:
    """The place of a run in the line of those that wait to train."""
    return f"waiting: place {place[0]:,} of {place[1]:,}"


def in_line(place: tuple[int, int], slots: int) -> str:
    """The same as a sentence."""
    return (
        f"**{waiting(place).capitalize()}.** This server trains {slots:,} at a time; this run goes on by "
        "itself when it is its turn."
    )


def moment(view: RunView, look_for: str) -> str:
    """The one sentence that says what is going on, from the numbers of the run."""
    if view.state == FAILED:
        return f"**The run failed.** {plain(view.reason)}"
    frame = view.frame
    if frame is None:
        return "Building the untrained model…"
    switched = without_masks(frame)
    if frame.step == 0 and view.state == IDLE:
        said = switched if view.interventions.masks else look_for  # by hand, or as these settings have it
        return f"**Step 0, untrained:** every head looks everywhere. Press **Start**. {said}"
    if switched and (view.turned_at is None or "causal mask" in switched):
        now = switched
    elif view.turned_at is None:
        now = (
            f"**No clear pattern yet.** The clearest head puts {frame.clearest_score:.0%} of its weight "
            f"on {AIMS[frame.aim]}{_measured(frame)}; {COUNTS[frame.aim]}."
        )
    else:
        step, site, head = view.turned_at
        score = float(frame.scores[site][head])
        reads = READS[frame.aim] if score >= THRESHOLD else "it has let go since"
        now = (
            f"★ **{head_name(site, head).capitalize()} {TURNED[frame.aim]}** at step {step:,}: "
            f"{reads} ({score:.0%} on {AIMS[frame.aim]}{_measured(frame)})."
            + (f" {switched}" if switched else "")
        )
    if view.state == RECORDED:
        return f"**Recorded before, with these settings:** press **Start** to train your own. {now}"
    return f"{now} {plain(view.reason)}" if view.reason else now


def _measured(frame: Frame) -> str:
    """Of which step a score is, where it is not of this one."""
    step = frame.measurement.step
    return "" if step == frame.step else f", as measured at step {step:,}"


def unlearned(word: str) -> str:
    """The sentence beside a word that the recording on the first page does not know."""
    return (
        f"**Your own model answers “{plain(word)}”, and has learned nothing yet:** press **Start**. The "
        "recording knows the other words."
    )


def looking_back(view: RunView, frame: Frame) -> str:
    """The sentence of a past step: what was there to see then, and what came next."""
    (site, head), score = frame.clearest, frame.clearest_score  # the one that is framed
    now = (
        f"**At step {frame.step:,}** the clearest head, {head_name(site, head)}, put {score:.0%} of its "
        f"weight on {AIMS[frame.aim]}{_measured(frame)}"
    )
    now += "." if score < THRESHOLD else f": {FOUND[frame.aim]}."
    here = [plain(moment.text) for moment in view.moments if moment.step == frame.step]
    later = [moment for moment in view.moments if moment.step > frame.step]
    if switched := without_masks(frame):
        now += f" {switched}"
    if here:
        now += f" ★ {'; '.join(here).capitalize()}."
    if later:
        now += f" Next moment, step {later[0].step:,}: {plain(later[0].text)}."
    return now


def words_right(view: RunView, frame: Frame | None) -> str:
    """The number that the last row of the room reads."""
    things = examples_of(view.config.train.task)
    label = "words right" if things == "words" else "right"  # a longer one would not fit
    if frame is None:
        return f"<div class='hl-right'><small>{label}</small> – </div>"
    known = frame.evaluation
    right, asked = known.right, known.total
    long = " class='long'" if right >= 1000 else ""  # as wide as the page is, it must fit
    more = ""
    if view.everyday is not None and frame is view.frame:
        more = f"<br>everyday words, when last asked: {view.everyday[0]} / {view.everyday[1]}"
    if known.bleu is not None and known.chrf is not None:
        more = f"<br>BLEU {known.bleu:.1f} · chrF {known.chrf:.1f}"
    return (
        f"<div class='hl-right'><small>{label}</small> <b{long}>{right:,}</b> / {asked:,}"
        f"<em>held-out {things}, at step {known.step:,}{more}</em></div>"
    )


def outputs(frame: Frame | None, chosen: str) -> str:
    """Each probe's free-running output, every letter marked right or wrong by more than colour."""
    if frame is None:
        return "<table class='hl-outputs'></table>"
    probes = sorted(frame.probes, key=lambda probe: probe.text != chosen)  # the chosen one on top
    rows = "".join(_output_row(probe, probe.text == chosen) for probe in probes)
    written = {probe.output_step for probe in probes} - {None, frame.step}
    said = f"<small>As written at step {max(written):,}:</small>" if written else ""
    return f"{said}<table class='hl-outputs' data-step='{frame.step}'>{rows}</table>"


def _output_row(probe: Probe, chosen: bool) -> str:
    letters = [
        f"<span class='{'ok' if right else 'no'}'>{html.escape(letter)}</span>"
        for letter, right in probe.marked
    ]
    mark = "<b class='yes'>✓</b>" if probe.right else "<b class='not'>✗</b>" if probe.forced else "?"
    if probe.output_step is None:
        letters, mark = ["<small>not asked yet</small>"], ""
    short, full = remark(probe)
    row = f"<td>{html.escape(probe.text)}</td><td>→ {''.join(letters)}</td>"
    style = "chosen" if chosen else ""
    wide = sum(1 if letter < "\u2e80" else 2 for letter in probe.text) > WIDE  # Chinese takes twice the room
    if wide and not (probe.text.isascii() and probe.text.isalpha()):
        # A sentence, not a word: it stands above its translation.
        return (
            f"<tr class='{style} long'><td colspan='3'><small>{html.escape(probe.text)}</small></td></tr>"
            f"<tr class='{style} long'><td colspan='2'>→ {''.join(letters)}</td>"
            f"<td title='{full}'>{mark} <small>{short}</small></td></tr>"
        )
    if probe.too_long:  # its output needs the room, and this is worth reading
        return (
            f"<tr class='{style} long'>{row}<td>{mark}</td></tr>"
            f"<tr class='{style}'><td colspan='3' title='{full}'><small>{full}</small></td></tr>"
        )
    return f"<tr class='{style}'>{row}<td title='{full}'>{mark} <small>{short}</small></td></tr>"


def remark(probe: Probe) -> tuple[str, str]:
    """What training knows of this word, in short and in full."""
    if not probe.forced:
        return "unknown", (
            "nobody here knows the right answer: the maps run over what the model wrote by itself at step "
            f"{probe.written_at:,}"
        )
    if probe.too_long:
        return "too long", "longer than anything trained on"
    if probe.too_short:
        return "too short", "shorter than anything trained on"
    if probe.held_out:
        return "held out", "kept from training by its hash: training never draws it"
    if probe.drawn_at is not None:
        return f"step {probe.drawn_at:,}", f"training drew it first at step {probe.drawn_at:,}"
    return "unseen", f"training has not drawn it in its first {probe.looked_up_to:,} steps"


def samples(frame: Frame) -> str:
    """A few held-out sentences and what the model wrote at the newest evaluation; nothing for words."""
    rows = "".join(
        f"<tr><td>{html.escape(question)}</td><td>→ {html.escape(output) or '…'}</td></tr>"
        for question, output in frame.evaluation.samples
    )
    if not rows:
        return "<div></div>"
    return (
        f"<small>Held-out sentences, as written at step {frame.evaluation.step:,}:</small>"
        f"<table class='hl-samples' data-step='{frame.evaluation.step}'>{rows}</table>"
    )


def by_length(frame: Frame) -> str:
    """Held-out examples right, by their length: a bar each, with its numbers under the pointer."""
    bars = "".join(
        f"<span title='length {n}: {right} of {asked} right'>{_BARS[round(8 * right / asked)]}"
        f"<i>{n}</i></span>"
        for n, (right, asked) in frame.evaluation.by_length.items()
    )
    return f"<div class='hl-lengths'><small>right by length</small>{bars}</div>" if bars else ""


_BARS = "·▁▂▃▄▅▆▇█"
