"""Writing an answer token by token, greedily or by beam search, and how right what is written is."""

from __future__ import annotations

from transformer.decoding.beam import GREEDY, Decoding, beam
from transformer.decoding.greedy import Written, greedy
from transformer.decoding.spelling import GenerationResult, spell, write
from transformer.decoding.tree import Beams, BeamTree, Candidate, beam_tree, beams_of

__all__ = [
    "GREEDY",
    "BeamTree",
    "Beams",
    "Decoding",
    "Candidate",
    "GenerationResult",
    "Written",
    "beam",
    "beam_tree",
    "beams_of",
    "greedy",
    "spell",
    "write",
]
