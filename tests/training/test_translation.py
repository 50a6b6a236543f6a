"""BLEU and chrF, compared with sacrebleu and values by hand, and the evaluations that report them."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import sacrebleu

from transformer import tasks
from transformer.tasks.corpus import Corpus, Pair
from transformer.tasks.writing import Writing
from transformer.training.evaluation import SAMPLES, evaluate, translation_scores
from transformer.training.loop import train
from transformer.training.state import TrainState

REFERENCES = [
    ["le chat noir voit le chien", "le chat noir regarde le chien"],
    ["la fille trouve la clé dans la maison"],
    ["il est ici"],
]


def test_any_reference_scores_100_and_an_output_with_nothing_in_common_scores_0():
    for at in (0, -1):
        outputs = [some[at] for some in REFERENCES]
        assert translation_scores(outputs, REFERENCES) == pytest.approx((100.0, 100.0))
    bleu, chrf = translation_scores(outputs, [some[:1] for some in REFERENCES])
    assert bleu < 90
    assert chrf < 95
    for nothing in ("xx yy zz ww", ""):
        assert translation_scores([nothing] * 3, REFERENCES) == (0.0, 0.0)


def test_scores_equal_those_of_sacrebleu_for_the_whole_corpus():
    outputs = ["le chat noir voit un chien", "la fille trouve la clé dans la ville", "il est là ici"]
    single = [some[0] for some in REFERENCES]
    bleu, chrf = translation_scores(outputs, [[one] for one in single])
    assert bleu == pytest.approx(sacrebleu.corpus_bleu(outputs, [single], use_effective_order=True).score)
    assert chrf == pytest.approx(sacrebleu.corpus_chrf(outputs, [single]).score)


def test_bleu_equals_a_small_case_computed_by_hand():
    """4 of 5, 3 of 4, 2 of 3 and 1 of 2 n-grams match, and the output has the length of the reference."""
    bleu, _ = translation_scores(["a b c d e"], [["a b c d f"]])
    assert bleu == pytest.approx(100 * math.exp(sum(map(math.log, (4 / 5, 3 / 4, 2 / 3, 1 / 2))) / 4))
    short, _ = translation_scores(["a b c d"], [["a b c d e"]])
    assert short == pytest.approx(100 * math.exp(1 - 5 / 4))  # only the brevity penalty counts


def test_a_source_with_fewer_references_than_another_gets_no_empty_reference():
    """An empty reference would be nearest in length to a one-word output and cancel its brevity penalty."""
    references = [["le chat dort bien"], ["il dort", "il est là"]]
    outputs = ["le", "il dort"]
    bleu, _ = translation_scores(outputs, references)
    assert bleu == pytest.approx(100 * math.exp(1 - 6 / 3))  # all 3 words match; the references have 4 + 2


# In an evaluation.

HELD_OUT = [
    Pair(f"the {a} sees the {b}", f"le {c} voit le {d}", held_out=True)
    for a, c in (("cat", "chat"), ("dog", "chien"), ("rat", "rat"))
    for b, d in (("cat", "chat"), ("dog", "chien"), ("rat", "rat"))
]


class Sentences(Corpus):
    name = "sentences"
    src = tgt = Writing()
    same_length = False
    translates = True
    size = 9

    def drawn(self, rng, count):
        return [Pair(pair.source, pair.target) for pair in HELD_OUT]

    def held_out(self):
        return HELD_OUT

    def tracked_words(self):
        return [HELD_OUT[0].source]

    def everyday(self):
        return []

    def read(self, text):
        return text

    def find(self, source):
        return next((pair for pair in HELD_OUT if pair.source == source), None)

    def references(self, source):
        return [self.find(source).target, "le chat dort"]


@pytest.fixture
def sentences(monkeypatch, tiny):
    def begin(corpus, **settings):
        monkeypatch.setattr(tasks, "corpus_of", lambda config: corpus)
        return TrainState.begin(tiny(task="en-fr", batch_size=3, **settings))

    return begin


@pytest.mark.parametrize("topology", ["encoder-decoder", "decoder-only"])
def test_an_evaluation_of_sentences_has_their_scores_and_a_few_outputs(sentences, monkeypatch, topology):
    state = sentences(Sentences(), topology=topology)
    words = [pair.source for pair in HELD_OUT]
    outputs = ["le chat dort", *(pair.target for pair in HELD_OUT[1:7]), "", "le le le"]

    def spelled(model, task, asked, **_):
        assert asked == words
        return SimpleNamespace(exact=[True] * 7 + [False] * 2, outputs=outputs, loss=1.5)

    monkeypatch.setattr("transformer.training.evaluation.spell", spelled)
    result = evaluate(state, words)
    expected = translation_scores(outputs, [[pair.target, "le chat dort"] for pair in HELD_OUT])
    assert (result.bleu, result.chrf) == pytest.approx(expected)
    assert 50 < result.bleu < 100
    assert result.samples == tuple(zip(words, outputs, strict=True))[:SAMPLES]
    assert len(result.samples) == 5
    assert (result.right, result.total) == (7, 9)
    assert result.by_length == {5: (7, 9)}


def test_without_translation_there_are_no_scores_and_no_outputs(sentences, tiny):
    class Codes(Sentences):
        translates = False

    for state in (sentences(Codes()), TrainState.begin(tiny())):
        result = evaluate(state, state.task.held_out()[:4])
        assert (result.bleu, result.chrf, result.samples) == (None, None, ())


def test_a_model_that_has_learned_its_sentences_translates_them(sentences):
    """Any reference counts as right; the model learns the reference that it is trained on."""
    state = sentences(Sentences(), steps=120, learning_rate=0.02, warmup_steps=10, evaluate_every=60)
    results = [report.evaluation for report in train(state) if report.evaluation]
    first, last = results[0], results[-1]
    assert last.right > 6
    assert last.bleu > 80
    assert last.chrf > 80
    assert 0 <= first.bleu <= last.bleu <= 100 + 1e-9
    outputs = dict(last.samples)
    assert list(outputs) == [pair.source for pair in HELD_OUT[:5]]
    assert sum(outputs[pair.source] == pair.target for pair in HELD_OUT[:5]) >= 3
