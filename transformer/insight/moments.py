"""Finding the moments of a run: the steps worth jumping to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from transformer.insight.aims import AIMS
from transformer.insight.names import head_name, without_prefix
from transformer.insight.scores import FOCUS, ROLES, THRESHOLD, Array, badge

TURNED, ACCURACY, DROP, INTERVENTION = "turned", "accuracy", "drop", "intervention"

LEVEL = 10
"""The level of the loss is the median of this many steps: one bad batch does not move it."""
SPAN = 40
"""The newest level is compared with that at the other end of this many steps."""
DROP_SHARE = 0.35
"""The loss drops when its level falls by this share ..."""
LEAST_DROP = 0.5
"""... and by at least this much: halving a loss near zero does not count."""
ONE_FALL = DROP_SHARE / 2
"""A fall goes on, and is not found again, until its share is back under this."""
BETWEEN_DROPS = 25
"""Steps from one drop to the next, at least."""
MAX_ROLES = 30
"""Most heads of a model of the user's own that become moments: there may be hundreds."""
MAX_DROPS = 5
"""Of one run."""


@dataclass(frozen=True)
class Moment:
    """A step worth jumping to."""

    step: int
    kind: str
    """turned, accuracy, drop or intervention."""
    text: str
    """The event, in words without its step."""
    site: str | None = None
    """The site of the head that turned."""
    head: int | None = None
    """Its number, from 0."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text.replace(" % of the", "% of the"))  # as in old runs


class Moments:
    """Finds the moments of one run while it goes on; for the run's own thread.

    Every method is told what is new, returns the new moments, and finds nothing twice.
    """

    def __init__(self) -> None:
        self.found: tuple[Moment, ...] = ()
        """All so far, in order of step. Replaced and never changed, so that other threads may read it."""
        self._below: set[tuple[str, int]] = set()
        """Heads that have been seen below the threshold."""
        self._n_losses = 0
        """Number of losses that have been looked at."""
        self._falling = False
        """Whether the newest drop still goes on."""

    def state(self) -> tuple[list[tuple[str, int]], int, bool]:
        """The state beside the moments found, as plain values: for `restore`."""
        return sorted(self._below), self._n_losses, self._falling

    def restore(self, found: tuple[Moment, ...], state: tuple[list[tuple[str, int]], int, bool]) -> None:
        """Go on as the finder of these moments would have."""
        self.found = found
        self._below, self._n_losses, self._falling = set(state[0]), state[1], state[2]

    def heads(
        self,
        step: int,
        scores: Mapping[str, Array],
        aim: str = "mirror",
        located: Callable[[str, int], int] | None = None,
    ) -> tuple[Moment, ...]:
        """Heads that turned: from below the threshold to it or beyond, each for the first time.

        A head that is there when it is first seen (the run began with learned weights) has not turned.

        Args:
            scores: site where the answer reads the question to (H,) scores of the aim at this step.
            aim: which score that is.
            located: tells at which step up to this one a head turned, which is found now; by default here.
        """
        turned = {(moment.site, moment.head) for moment in self._of_kind(TURNED)}
        new = []
        for site, row in scores.items():
            for head, score in enumerate(row):
                if score < THRESHOLD:
                    self._below.add((site, head))
                elif (site, head) in self._below and (site, head) not in turned:
                    text = f"{head_name(site, head)} {AIMS[aim].turned}"
                    at = step if located is None else located(site, head)
                    new.append(Moment(at, TURNED, text, site, head))
        return self._add(new)

    def roles(self, step: int, scores: Mapping[str, Mapping[str, Array]]) -> tuple[Moment, ...]:
        """Heads of a model of the user's own that took a role, or came into focus, each for the first time.

        Args:
            scores: site to the name of a score to (H,) at this step.
        """
        turned = {(moment.site, moment.head) for moment in self._of_kind(TURNED)}
        new = []
        for site, of in scores.items():
            for head in range(len(of["entropy"])):
                known = {name: float(values[head]) for name, values in of.items()}
                role = badge(known)
                if role is None and known[FOCUS] < THRESHOLD:
                    self._below.add((site, head))
                elif (site, head) in self._below and (site, head) not in turned:
                    name = head_name(without_prefix(site, scores), head)
                    said = f"{name} {AIMS[FOCUS].turned}" if role is None else f"{name}: {ROLES[role]}"
                    new.append(Moment(step, TURNED, said, site, head))
        return self._add(new[: max(0, MAX_ROLES - len(turned))])

    def accuracy(self, step: int, marks: Mapping[str, int], things: str = "words") -> tuple[Moment, ...]:
        """Marks of held-out examples right.

        Args:
            step: now; each moment stands at its mark's own step.
            marks: share, as text, to the step at which it was first reached.
            things: what the examples are called.
        """
        return self._add(
            Moment(reached, ACCURACY, f"{100 * float(mark):g}% of the held-out {things} right")
            for mark, reached in marks.items()
        )

    def losses(self, steps: Array, losses: Array) -> tuple[Moment, ...]:
        """Sudden drops of the loss, each once however far it goes on.

        Args:
            steps: (N,) of the whole run so far; the same as last time with new ones at the end.
            losses: (N,) the training loss of each.
        """
        new: list[Moment] = []
        for end in range(max(self._n_losses + 1, SPAN), len(losses) + 1):
            before = median(losses[end - SPAN : end - SPAN + LEVEL].tolist())
            now = median(losses[end - LEVEL : end].tolist())
            fall = before - now
            self._falling = self._falling and fall >= ONE_FALL * before
            drops = [*self._of_kind(DROP), *new]
            room = len(drops) < MAX_DROPS and (not drops or steps[end - 1] >= drops[-1].step + BETWEEN_DROPS)
            if fall >= max(DROP_SHARE * before, LEAST_DROP) and room and not self._falling:
                text = f"the loss dropped from {before:.2f} to {now:.2f}"
                new.append(Moment(int(steps[end - 1]), DROP, text))
                self._falling = True
        self._n_losses = len(losses)
        return self._add(new)

    def intervention(self, step: int, text: str) -> tuple[Moment, ...]:
        """A user changed something in mid-run; the text says what."""
        return self._add([Moment(step, INTERVENTION, text)])

    def _of_kind(self, kind: str) -> list[Moment]:
        return [moment for moment in self.found if moment.kind == kind]

    def _add(self, moments: Iterable[Moment]) -> tuple[Moment, ...]:
        new = tuple(moment for moment in moments if moment not in self.found)
        self.found = tuple(sorted(self.found + new, key=lambda moment: moment.step))
        return new
