"""Finds the moments of a run: the steps worth jumping to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from transformer.insight.names import TARGET_SCORES, head_name, without_prefix
from transformer.insight.scores import FOCUS, ROLES, THRESHOLD, Array, role_of

TURNED, ACCURACY, DROP, INTERVENTION = "turned", "accuracy", "drop", "intervention"

LEVEL_STEPS = 10
"""Number of losses whose median is the level of the loss: a single bad batch hardly changes it."""
DROP_STEPS = 40
"""Steps over which a drop is measured, from the level at their beginning to that at their end."""
DROP_SHARE = 0.35
"""Least fall that counts as a drop, as a share of the earlier level."""
LEAST_DROP = 0.5
"""Least absolute fall that counts as a drop: halving a loss near zero does not."""
DROP_ENDS_SHARE = DROP_SHARE / 2
"""A drop lasts, and is not found again, until the fall is below this share of the earlier level."""
BETWEEN_DROPS = 25
"""Least number of steps from one drop to the next."""
MAX_ROLES = 30
"""Maximum number of heads of an own model that become moments: it may have hundreds of heads."""
MAX_DROPS = 5
"""Maximum number of drops in one run."""

_RENAMED = {
    ACCURACY: ((" % of the", "% of the"), ("held-out", "test")),
    TURNED: (
        ("turned anti-diagonal", TARGET_SCORES["mirror"].turned),
        ("found the alignment", TARGET_SCORES["gold"].turned),
        ("came into focus", TARGET_SCORES["focus"].turned),
    ),
    INTERVENTION: (
        (r"decoder layer (\d+) \(cross\)", r"cross-attention layer \1"),
        (r"(decoder layer \d+) \(self\)", r"\1"),
    ),
}
"""Kind of moment to (regular expression, replacement): updates texts that were recorded with older words."""


@dataclass(frozen=True)
class Moment:
    """A step worth jumping to."""

    step: int
    kind: str
    """turned, accuracy, drop or intervention."""
    text: str
    """The event, in words without its step."""
    site: str | None = None
    """The site of the head that turned; None for other kinds."""
    head: int | None = None
    """The number of that head, from 0; None for other kinds."""

    def __post_init__(self) -> None:
        renamed = _RENAMED.get(self.kind, ())
        if self.site is not None and self.site.endswith(".cross"):
            renamed += (("decoder layer", "cross-attention layer"),)
        for before, now in renamed:
            object.__setattr__(self, "text", re.sub(before, now, self.text))


class Moments:
    """Finds the moments of one run while it trains; to be used only by the thread of the run.

    Methods that look for moments return only new ones.
    """

    def __init__(self) -> None:
        self.found: tuple[Moment, ...] = ()
        """All so far, ordered by step. Replaced and never mutated, so that other threads can read it."""
        self._below: set[tuple[str, int]] = set()
        """Heads that have been seen below the threshold."""
        self._n_losses = 0
        """Number of losses that have been looked at."""
        self._falling = False
        """Whether the newest drop still goes on."""

    def state(self) -> tuple[list[tuple[str, int]], int, bool]:
        """The state other than `found`, as plain values: for `restore`."""
        return sorted(self._below), self._n_losses, self._falling

    def restore(self, found: tuple[Moment, ...], state: tuple[list[tuple[str, int]], int, bool]) -> None:
        """Continue from the moments and the state of an earlier finder."""
        self.found = found
        self._below, self._n_losses, self._falling = set(state[0]), state[1], state[2]

    def heads(
        self,
        step: int,
        scores: Mapping[str, Array],
        target_score: str = "mirror",
        located: Callable[[str, int], int] | None = None,
    ) -> tuple[Moment, ...]:
        """Find heads whose score reaches the threshold after being below it, each once.

        A head that has never been seen below the threshold does not count.

        Args:
            scores: for each site where the answer reads the question, (H,) target scores at this step.
            target_score: the name of the score, a key of `TARGET_SCORES`.
            located: called with (site, head); returns the step, at most `step`, at which the head reached the
                threshold. By default, this is `step`.
        """
        turned = {(moment.site, moment.head) for moment in self._of_kind(TURNED)}
        new = []
        for site, row in scores.items():
            for head, score in enumerate(row):
                if score < THRESHOLD:
                    self._below.add((site, head))
                elif (site, head) in self._below and (site, head) not in turned:
                    text = f"{head_name(site, head)} {TARGET_SCORES[target_score].turned}"
                    at = step if located is None else located(site, head)
                    new.append(Moment(at, TURNED, text, site, head))
        return self._add(new)

    def roles(self, step: int, scores: Mapping[str, Mapping[str, Array]]) -> tuple[Moment, ...]:
        """Find heads of an own model that take a role or come into focus after having neither, each once.

        At most `MAX_ROLES` in all are found.

        Args:
            scores: for each site, the name of a score to (H,) values at this step.
        """
        turned = {(moment.site, moment.head) for moment in self._of_kind(TURNED)}
        new = []
        for site, of in scores.items():
            for head in range(len(of["entropy"])):
                score_of_role = {name: float(values[head]) for name, values in of.items()}
                role = role_of(score_of_role)
                if role is None and score_of_role[FOCUS] < THRESHOLD:
                    self._below.add((site, head))
                elif (site, head) in self._below and (site, head) not in turned:
                    name = head_name(without_prefix(site, scores), head)
                    sentence = (
                        f"{name} {TARGET_SCORES[FOCUS].turned}" if role is None else f"{name}: {ROLES[role]}"
                    )
                    new.append(Moment(step, TURNED, sentence, site, head))
        return self._add(new[: max(0, MAX_ROLES - len(turned))])

    def accuracy(self, marks: Mapping[str, int], noun: str = "words") -> tuple[Moment, ...]:
        """Find the levels of held-out accuracy that have been reached.

        Args:
            marks: accuracy, as text such as "0.5", to the step at which it was first reached.
            noun: plural noun for the examples.
        """
        return self._add(
            Moment(reached, ACCURACY, f"{100 * float(mark):g}% of the test {noun} right")
            for mark, reached in marks.items()
        )

    def losses(self, steps: Array, losses: Array) -> tuple[Moment, ...]:
        """Find sudden drops of the loss, each once however long it lasts.

        Args:
            steps: (N,) all steps of the run so far; each call extends the array of the call before.
            losses: (N,) the training loss of each.
        """
        new: list[Moment] = []
        for end in range(max(self._n_losses + 1, DROP_STEPS), len(losses) + 1):
            before = median(losses[end - DROP_STEPS : end - DROP_STEPS + LEVEL_STEPS].tolist())
            now = median(losses[end - LEVEL_STEPS : end].tolist())
            fall = before - now
            self._falling = self._falling and fall >= DROP_ENDS_SHARE * before
            drops = [*self._of_kind(DROP), *new]
            room = len(drops) < MAX_DROPS and (not drops or steps[end - 1] >= drops[-1].step + BETWEEN_DROPS)
            if fall >= max(DROP_SHARE * before, LEAST_DROP) and room and not self._falling:
                text = f"the loss dropped from {before:.2f} to {now:.2f}"
                new.append(Moment(int(steps[end - 1]), DROP, text))
                self._falling = True
        self._n_losses = len(losses)
        return self._add(new)

    def intervention(self, step: int, text: str) -> tuple[Moment, ...]:
        """Add a change that the user made after this step; `text` describes the change."""
        new = Moment(step, INTERVENTION, text)
        self.found = tuple(moment for moment in self.found if moment != new)  # the newest change comes last
        return self._add([new])

    def _of_kind(self, kind: str) -> list[Moment]:
        return [moment for moment in self.found if moment.kind == kind]

    def _add(self, moments: Iterable[Moment]) -> tuple[Moment, ...]:
        new = tuple(moment for moment in moments if moment not in self.found)
        self.found = tuple(sorted(self.found + new, key=lambda moment: moment.step))
        return new
