"""The registry of all runs of the process: by id, newest first, up to a limit."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from tests.runs.conftest import unseen_for
from transformer.errors import InputError
from transformer.runs import registry as module
from transformer.runs.limits import Limits
from transformer.storage.archive import Archive
from transformer.storage.tokens import new_token
from transformer.training.state import TrainState


@pytest.fixture
def registry(server):
    """A registry with the default limits."""
    return server()


def finish(registry, run, until):
    registry.start(run)
    until(lambda: run.view.state == "finished")


def test_a_draft_is_found_by_its_id_and_not_listed_until_it_is_started(registry, tiny, until):
    run, other = registry.draft(tiny()), registry.draft(tiny())
    assert run.id != other.id
    assert len(run.id) >= 20
    assert registry.get(run.id) is run
    assert registry.listed() == []
    finish(registry, run, until)
    finish(registry, other, until)
    assert registry.listed() == [other, run]
    assert registry.get(run.id) is run
    assert registry.get("no such run") is registry.get(None) is registry.get("") is None


def test_a_run_records_the_run_that_it_was_started_after(registry, tiny, until):
    first, second = registry.draft(tiny()), registry.draft(tiny(), words=("ox",))
    registry.start(first)
    registry.start(second, after=first.id)
    assert (first.view.after, second.view.after) == (None, first.id)
    until(lambda: second.view.frame)
    assert [tracked.text for tracked in second.view.frame.words] == ["ox"]


def test_a_discarded_draft_is_forgotten_but_a_started_run_is_kept(registry, tiny, until):
    draft, run = registry.draft(tiny()), registry.draft(tiny())
    finish(registry, run, until)
    registry.discard(draft.id)
    registry.discard(run.id)
    assert draft.join()
    assert registry.get(draft.id) is None
    assert registry.get(run.id) is run


def test_drafts_are_built_one_by_one_and_one_that_is_discarded_before_is_not_built(
    registry, tiny, until, monkeypatch
):
    begin, built, may_go_on = TrainState.begin, [], threading.Event()

    def held(config, *rest):
        built.append(config.seed)
        assert may_go_on.wait(20.0)
        return begin(config, *rest)

    monkeypatch.setattr(TrainState, "begin", staticmethod(held))
    drafts = [registry.draft(tiny(seed=seed)) for seed in (201, 202, 203)]  # not cached
    until(lambda: built)
    time.sleep(0.2)
    (first,) = built
    gone, other = (draft for draft in drafts if draft.config.seed != first)
    registry.discard(gone.id)
    may_go_on.set()
    for draft in drafts:
        assert draft.ready.wait(20.0)
    assert built == [first, other.config.seed]
    assert (gone.view.frame, other.view.frame.step) == (None, 0)


def test_an_unviewed_draft_is_forgotten_when_another_is_made(registry, tiny, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    left, looked_at = registry.draft(tiny()), registry.draft(tiny())
    clock[0] = module.DRAFT_SECONDS - 1
    assert registry.get(looked_at.id) is looked_at
    clock[0] = module.DRAFT_SECONDS + 1
    registry.draft(tiny())
    monkeypatch.undo()
    assert registry.get(left.id) is None
    assert registry.get(looked_at.id) is looked_at


def test_beyond_the_limit_of_kept_runs_the_draft_viewed_longest_ago_is_forgotten(server, tiny):
    registry = server(kept=3)
    first, *others = [registry.draft(tiny(seed=seed), visitor=f"page {seed}") for seed in range(3)]
    assert registry.get(first.id) is first  # looked at again
    newest = registry.draft(tiny(seed=3))
    assert [registry.get(one.id) is one for one in (first, *others, newest)] == [True, False, True, True]
    assert others[0].join()


def test_a_reserved_run_is_built_when_it_is_asked_for_and_again_after_it_was_lost(registry, tiny):
    token, other = new_token(), new_token()
    id_ = registry.reserve(tiny(seed=7), ("ox", "cab"), visitor="page", token=token)
    assert registry.get(id_) is None
    run = registry.made(id_)
    assert (run.id, run.config, run.words, run.visitor) == (id_, tiny(seed=7), ("ox", "cab"), "page")
    assert registry.made(id_) is registry.get(id_) is run
    registry.owners.present(id_, token, {"at": 3})
    unseen_for(run, 16)
    registry.draft(tiny())
    assert registry.get(id_) is None
    assert run.join()
    assert registry.owners.is_owner(id_, token)
    assert not registry.owners.is_owner(id_, other)
    assert registry.owners.presentation(id_) == {"at": 3}
    again = registry.made(id_)
    assert again is not run
    assert (again.id, again.config, again.words, again.visitor) == (id_, run.config, run.words, "page")
    assert registry.control(id_, token) is again


def test_an_existing_run_that_is_reserved_keeps_its_token_and_is_untrained_once_it_was_lost(
    server, tiny, until
):
    registry, token = server(kept=1), new_token()
    run = registry.draft(tiny(), ("ox",), token=token)
    finish(registry, run, until)
    assert registry.reserve(run.config, run.words, id_=run.id) == run.id
    assert registry.made(run.id) is run
    finish(registry, registry.draft(tiny()), until)
    assert registry.get(run.id) is None
    again = registry.control(run.id, token) if registry.made(run.id) else None
    assert (again.view.state, again.config, again.words) == ("idle", run.config, ("ox",))


def test_beyond_the_limit_the_reserved_run_needed_longest_ago_is_forgotten(registry, tiny, monkeypatch):
    monkeypatch.setattr(module, "MOST_RESERVED", 2)
    first, second = (registry.reserve(tiny(), token="a token") for _ in range(2))
    registry.discard(registry.made(first).id)
    third = registry.reserve(tiny(), token="a token")
    assert [registry.owners.is_owned(one) for one in (first, second, third)] == [True, False, True]
    assert registry.made(second) is None
    assert registry.made(first).id == first


def test_settings_beyond_the_limits_are_not_reserved(server, tiny):
    with pytest.raises(InputError, match="steps"):
        server(steps=300).reserve(tiny(steps=301))


def test_the_least_recently_used_ended_run_is_evicted_but_a_training_run_is_not(registry, tiny, until):
    training = registry.draft(tiny(steps=100_000, evaluate_every=100_000))
    registry.start(training)
    ended = [registry.draft(tiny(steps=1)) for _ in range(5)]
    registry.limits = Limits(kept=4)
    for run in ended[:3]:
        finish(registry, run, until)
    registry.get(ended[0].id).look()
    for run in ended[3:]:
        finish(registry, run, until)
    assert registry.listed() == [ended[4], ended[3], ended[0], training]
    assert registry.get(ended[1].id) is None
    assert [registry.owners.is_owned(run.id) for run in ended] == [True, False, False, True, True]
    assert ended[1].view.step == 1  # a page that holds it can still read it


def test_a_run_that_is_opened_while_it_is_being_put_away_can_still_be_commanded(
    server, tiny, until, monkeypatch
):
    registry, token = server(library=True, kept=1), new_token()
    run = registry.draft(tiny(), token=token)
    finish(registry, run, until)
    close = Archive.close
    monkeypatch.setattr(Archive, "close", lambda archive: (time.sleep(1.0), close(archive)))
    finish(registry, registry.draft(tiny()), until)  # there is room for one
    again = registry.control(run.id, token)
    assert again is not run
    assert (again.view.state, again.words) == ("finished", run.words)


def test_reloading_the_module_keeps_the_same_registry():
    code = (
        "import importlib, transformer.runs.registry as module\n"
        "first = module.REGISTRY\n"
        "print(importlib.reload(module).REGISTRY is first)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "True"
