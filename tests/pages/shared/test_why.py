"""Each page says why attention is needed."""

from __future__ import annotations

from pages.shared.why import WHY

PATHS = {"Watch": "train", "Ask": "explore", "Look inside": "anatomy", "Masks": "masks", "Your data": "data"}


def test_each_page_says_in_a_sentence_of_its_own_why_attention_is_needed(visit):
    visitor = visit()
    assert set(PATHS) == set(WHY)
    assert len(set(WHY.values())) == len(WHY)
    for title, path in PATHS.items():
        visitor.go(path)
        assert [name for name, said in WHY.items() if visitor.says(said)] == [title]
        assert "attention" in WHY[title].lower()
