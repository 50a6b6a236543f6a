"""Writing an answer token by token, greedily or by beam search, and how right what is written is."""

from __future__ import annotations

from transformer.decoding.beam import beam
from transformer.decoding.beams import Beams, Output, beams_of
from transformer.decoding.greedy import greedy
from transformer.decoding.search import GREEDY, Decoding
from transformer.decoding.spelling import Spelling, spell, write
from transformer.decoding.tree import BeamTree, Hypothesis, beam_tree
from transformer.decoding.written import Written

__all__ = [
    "GREEDY",
    "BeamTree",
    "Beams",
    "Decoding",
    "Hypothesis",
    "Output",
    "Spelling",
    "Written",
    "beam",
    "beam_tree",
    "beams_of",
    "greedy",
    "spell",
    "write",
]
