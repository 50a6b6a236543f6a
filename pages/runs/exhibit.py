"""The recording that an idle page shows: a run recorded earlier with the settings on the screen."""

from __future__ import annotations

from pages.shared.session import session
from transformer.interventions import NOTHING
from transformer.recording.view import IDLE
from transformer.runs.demo import demo_run
from transformer.runs.watched import Watched
from transformer.tasks import completed


def exhibited(run: Watched) -> Watched:
    """The recording, as long as nothing has been done with an untrained model; or else the run itself.

    The model is built meanwhile, and whatever is pressed or typed is for it.
    """
    touched = run.view.state != IDLE or run.view.interventions != NOTHING
    if touched or run.id != session.draft:
        return run
    recording = demo_run()
    if recording is None or recording.config != completed(run.config):
        return run
    asked, recorded_words = ({one.text for one in some.questions} for some in (run, recording))
    return recording if recorded_words <= asked else run
