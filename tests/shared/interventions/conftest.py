"""Several interventions on one model, and the source and target tokens of a word."""

from __future__ import annotations

from transformer.shared.interventions import Block, Interventions

SELF, CROSS = "decoder.0.self", "decoder.0.cross"
SRC, TGT = ("[SOS]", *"noon", "[EOS]"), ("[SOS]", *"noon")  # 6 and 5 tokens, two letters twice
MANY = Interventions(
    ablated=(("decoder.0.cross", 2), ("encoder.0", 0)),
    blocked=(
        Block(site="encoder.0", head=1, row=2, column=3),
        Block(site="decoder.0.cross", token="[EOS]"),
        Block(site="encoder.0", token="o", row=0),
    ),
    masks=(("causal", False), ("padding", True)),
)
