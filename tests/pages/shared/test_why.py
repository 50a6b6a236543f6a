"""Each page says why attention is needed."""

from __future__ import annotations

import pytest

from pages.shared.why import WHY

PATHS = {"Watch": "train", "Ask": "explore", "Look inside": "anatomy", "Masks": "masks", "Your data": "data"}


@pytest.mark.parametrize("title", PATHS)
def test_each_page_says_in_a_sentence_of_its_own_why_attention_is_needed(visit, title):
    visitor = visit(page=PATHS[title])
    assert visitor.says(WHY[title])
    assert "attention" in WHY[title].lower()
    assert len(set(WHY.values())) == len(WHY)
    assert not any(visitor.says(other) for name, other in WHY.items() if name != title)
