"""Where a trace is looked at: one head of one attention, one cell, and what the things there are called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from transformer.anatomy.panels import Array, Focus, Panel, numbered, strip
from transformer.config import ModelConfig
from transformer.insight.names import site_name

if TYPE_CHECKING:
    from transformer.anatomy.passes import AttentionPass, FeedForwardPass, ForwardTrace, StackPass
    from transformer.recording.frame import Axes

SIDE_TITLES = {"src": "the word", "tgt": "written so far", "seq": "word, then answer so far"}


@dataclass(frozen=True)
class Spot:
    """One head of one attention of a trace, and the cell that is explained."""

    trace: ForwardTrace
    site: str
    head: int
    focus: Focus

    @property
    def model(self) -> ModelConfig:
        return self.trace.config.model

    @property
    def axes(self) -> Axes:
        return self.trace.axes[self.site]

    @property
    def attention(self) -> AttentionPass:
        return self.trace.attentions[self.site]

    @property
    def layer(self) -> int:
        """Counted from 0."""
        return int(self.site.split(".")[1])

    @property
    def stack(self) -> StackPass:
        """The stack that this attention stands in."""
        return self.trace.stacks[self.stack_name]

    @property
    def stack_name(self) -> str:
        return self.site.split(".")[0]

    @property
    def feed_forward(self) -> FeedForwardPass:
        """That of the same layer."""
        return self.stack.layers[self.layer]

    @property
    def cross(self) -> bool:
        """Whether keys come from elsewhere than queries."""
        return self.axes.kind == "cross"

    @property
    def place(self) -> str:
        """In words: decoder layer 2."""
        return site_name(self.site)

    @property
    def row(self) -> int:
        return min(self.focus.row, len(self.queries) - 1)

    @property
    def column(self) -> int:
        if self.focus.column is None:
            return int(self.attention.weights[self.head, self.row].argmax())
        return min(self.focus.column, len(self.keys) - 1)

    @property
    def settled(self) -> Focus:
        """The focus with its cell's own column."""
        return replace(self.focus, column=self.column)

    def feature(self, width: int) -> int:
        """The focused feature of a vector of this width."""
        return min(self.focus.feature, width - 1)

    @property
    def queries(self) -> tuple[str, ...]:
        """The tokens of the rows."""
        return self.trace.tokens(self.axes.query)

    @property
    def keys(self) -> tuple[str, ...]:
        """The tokens of the columns."""
        return self.trace.tokens(self.axes.key)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The tokens of the rows, with what each is to write."""
        if not self.axes.writes:
            return self.queries
        pairs = zip(self.queries, self.trace.expected, strict=True)
        return tuple(f"{read} → {to}" if to else read for read, to in pairs)

    @property
    def query_token(self) -> str:
        """The focused token of the rows, in words."""
        return f"“{self.queries[self.row]}” (position {self.row + 1})"

    @property
    def key_token(self) -> str:
        """The focused token of the columns, in words."""
        return f"“{self.keys[self.column]}” (position {self.column + 1})"

    def letter(self, side: str) -> str:
        """What the length of a side is called."""
        return "S" if side == "src" else "T"

    def shape(self, *letters: str) -> str:
        """Such as "(T, K) = (7, 8)"; Q and S stand for the two sides, whatever they are called here."""
        names = {"Q": self.letter(self.axes.query), "S": self.letter(self.axes.key)}
        model = self.model
        sizes = {
            "Q": len(self.queries),
            "S": len(self.keys),
            "K": model.d_head,
            "D": model.d_model,
            "V": len(self.trace.vocabulary),
            "T": len(self.trace.tgt_tokens),
        }
        if len(letters) == 1:
            return f"{names.get(letters[0], letters[0])} = {sizes[letters[0]]}"
        left = ", ".join(names.get(letter, letter) for letter in letters)
        right = ", ".join(str(sizes[letter]) for letter in letters)
        return f"({left}) = ({right})"

    def of_queries(self, name: str, values: Array, role: str = "plain", feature: str = "feature") -> Panel:
        """A vector for each row, (Q, n).

        Args:
            feature: what its columns are to the focus; empty where they are no features of the result.
        """
        return Panel(
            name=name,
            values=values,
            rows=self.rows,
            columns=numbered(values.shape[1]),
            role=role,
            axes=("row", feature),
            row_title=SIDE_TITLES[self.axes.query],
            column_title="feature",
        )

    def of_keys(self, name: str, values: Array, role: str = "plain") -> Panel:
        """A vector for each column, (S, n)."""
        return Panel(
            name=name,
            values=values,
            rows=self.keys,
            columns=numbered(values.shape[1]),
            role=role,
            axes=("column", "feature"),
            row_title=SIDE_TITLES[self.axes.key],
            column_title="feature",
        )

    def map(
        self,
        name: str,
        values: Array,
        role: str,
        hover_rows: tuple[str, ...] = (),
        codes: Array | None = None,
    ) -> Panel:
        """A number for each row and column, (Q, S)."""
        return Panel(
            name=name,
            values=values,
            rows=self.rows,
            columns=self.keys,
            role=role,
            axes=("row", "column"),
            row_title=f"query: {SIDE_TITLES[self.axes.query]}",
            column_title=f"key: {SIDE_TITLES[self.axes.key]}",
            hover_rows=hover_rows,
            codes=codes,
        )

    def is_off(self, head: int) -> bool:
        """Whether a head of this attention is switched off, so that zeros go on in its place."""
        return head in self.trace.interventions.heads_off_at(self.site)

    def score_strip(self, name: str, values: Array, codes: Array | None = None) -> Panel:
        """A score for each column, (S,), of which the focused one matters."""
        return strip(name, values, self.keys, "scores", "key", codes, "column")

    def norm_of(self, residual: str) -> tuple[Array, Array]:
        """Gain and bias of a norm."""
        parameters = self.trace.parameters
        return parameters[f"{residual}.weight"], parameters[f"{residual}.bias"]

    def linear(self, module: str, out: int) -> tuple[Array, float | None]:
        """The weights, (n_in,), and the bias of one output of a linear map."""
        parameters = self.trace.parameters
        bias = parameters.get(f"{module}.bias")
        return parameters[f"{module}.weight"][out], None if bias is None else float(bias[out])
