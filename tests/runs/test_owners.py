"""Owners of runs: who may command a run, also while pages open."""

from __future__ import annotations

import threading

from transformer.runs.owners import Owners, Visitor


class OpensAnotherPage(Visitor):
    """A visitor of whom another page opens while the name is read."""

    def __init__(self, owners):
        self._owners, self.another, self.threads = owners, Visitor(), []

    @property
    def name(self):
        if not self.threads:
            enters = threading.Thread(target=self._owners.enter, args=("run", "token", self.another))
            self.threads.append(enters)
            enters.start()
            enters.join(0.2)
        return "first"


def test_a_page_that_opens_while_pages_are_looked_through_is_known_afterwards():
    owners = Owners(lambda id_: None)
    owners.set_token("run", "token")
    pages = [OpensAnotherPage(owners), OpensAnotherPage(owners)]
    assert all(owners.enter("run", "token", page) for page in pages)
    assert not owners.enter("run", "wrong", pages[0])
    assert owners.knows("first", "run")
    assert not owners.knows("second", "run")
    for page in pages:
        for thread in page.threads:
            thread.join()
        assert not page.threads or owners.knows(page.another.name, "run")
    assert any(page.threads for page in pages)
