"""Five training pairs, some with a source longer than the target; three held-out pairs; tokenizer texts."""

from __future__ import annotations

import pytest

from transformer import tasks
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.tasks import task_of
from transformer.tasks.corpus import Corpus, Pair
from transformer.tasks.writing import Writing

TRAINED = [
    Pair("the cat sees the dog", "le chat voit", ((0,), (1,), (2,))),
    Pair("a dog sees", "voit", ((2,),)),
    Pair("a dog sees", "un chat", ((0,), (1,))),  # a second answer to the same question
    Pair("the dog", "le chien", ((0,), (1,))),
    Pair("cat", "chat", ((0,),)),
]
HELD_OUT = [
    Pair("the cat", "le chat", ((0,), (1,)), held_out=True),
    Pair("a cat sees the dog", "un chat voit", ((0,), (1,), (2,)), held_out=True),
    Pair("a cat", "un chat", ((0,), (1,)), held_out=True),
]

TEXTS = [
    "the cat sees the dog",
    "a dog sees a hat",
    "that hat is the cat's",
    "the then there",
    "é tu, brute?",
]
"""The texts that tokenizers are trained on."""


class Sentences(Corpus):
    """A corpus of these pairs; any other sentence may be asked, but has no known answer."""

    name = "sentences"
    src = tgt = Writing()
    translates = True

    def __init__(self, endless=False, kept=None):
        self.size = None if endless else len(TRAINED)
        self.kept = kept or HELD_OUT
        self.asked = []

    def drawn(self, rng, count):
        return [TRAINED[i] for i in rng.integers(0, 5, count)] if self.size is None else list(TRAINED)

    def held_out(self):
        return self.kept

    def tracked_words(self):
        return ["the cat", "cat"]

    def read(self, text):
        if not text.strip():
            raise InputError("There is nothing to ask.", "probe_words")
        return self.src.clean(text)

    def find(self, source):
        self.asked.append(source)
        return next((pair for pair in [*TRAINED, *self.kept] if pair.source == source), None)

    def references(self, source):
        return tuple(pair.target for pair in [*TRAINED, *self.kept] if pair.source == source)


@pytest.fixture
def task(monkeypatch):
    """Return a task on these sentences, regardless of the task that its configuration names."""

    def make(topology="encoder-decoder", corpus=None, one_vocabulary=False, **settings):
        corpus = corpus or Sentences()
        monkeypatch.setattr(tasks, "corpus_of", lambda config: corpus)
        tables = "one" if one_vocabulary else "two"
        changes = {"task": "en-fr", "batch_size": 2, "embedding_tables": tables, **settings}
        return task_of(RunConfig().with_changes(topology=topology, **changes))

    return make
