"""What runs of several seeds have in common, in a sentence from their numbers."""

from __future__ import annotations

import pytest

from transformer.insight.seeds import Ending, in_common

CROSS = "decoder.1.cross"


@pytest.mark.parametrize(
    ("turned", "failed", "said"),
    [
        (
            [(131, CROSS, 0), (104, CROSS, 2), (118, CROSS, 0)],
            0,
            "In 3 of 3 runs a head began to read backwards, between steps 104 and 131. It is one of the "
            "heads of cross-attention layer 2; which one differs.",
        ),
        (
            [(7, CROSS, 1), (1200, CROSS, 1)],
            0,
            "In 2 of 2 runs a head began to read backwards, between steps 7 and 1,200. It is "
            "cross-attention layer 2, head 2.",
        ),
        (
            [(7, CROSS, 1), None, (9, "decoder.0.cross", 1)],
            0,
            "In 2 of 3 runs a head began to read backwards, between steps 7 and 9. Its layer differs.",
        ),
        (
            [(7, CROSS, 1), None],
            1,
            "In 1 of 2 runs a head began to read backwards, at step 7. It is "
            "cross-attention layer 2, head 2. 1 of 2 failed.",
        ),
        ([None, None], 0, "No head began to read backwards in any of 2 runs."),
    ],
)
def test_the_sentence_counts_runs_and_says_what_differs(turned, failed, said):
    endings = [Ending(seed=i, turned=one, failed=i >= len(turned) - failed) for i, one in enumerate(turned)]
    assert in_common(endings, "mirror") == said


def test_each_task_has_its_own_words():
    (ending,) = [Ending(seed=3, turned=(90, "decoder.1.self", 0))]
    assert in_common([ending, ending], "prefix") == (
        "In 2 of 2 runs a head became an induction head, at step 90. It is decoder layer 2, head 1."
    )
