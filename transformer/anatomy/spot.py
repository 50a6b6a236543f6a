"""The head and the cell of a trace that the stages explain, with the names of their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer.anatomy import latex
from transformer.anatomy.latex import Digits, Shown
from transformer.anatomy.panels import Array, Focus, Panel, numbered, strip
from transformer.config import ModelConfig

if TYPE_CHECKING:
    from transformer.anatomy.passes import AttentionPass, ForwardTrace, StackPass
    from transformer.recording.frame import Axes

SIDE_TITLES = {"src": "question", "tgt": "answer so far", "seq": "question, then answer so far"}
LENGTHS = {"src": "S", "tgt": "T", "seq": "T"}
"""Symbol of the length of a side."""


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One head of one attention of a trace, and the cell that is explained."""

    trace: ForwardTrace
    site: str
    head: int
    model: ModelConfig
    axes: Axes
    attention: AttentionPass
    stack_name: str
    """The stack that this attention stands in."""
    queries: tuple[str, ...]
    """The tokens of the rows."""
    keys: tuple[str, ...]
    """The tokens of the columns."""
    row: int
    column: int
    feature: int
    """Of the residual stream."""
    head_feature: int
    """Of a query, key or value."""

    @property
    def cross(self) -> bool:
        """Whether keys and queries come from different stacks."""
        return self.axes.kind == "cross"

    @property
    def stack(self) -> StackPass:
        return self.trace.stacks[self.stack_name]

    @property
    def query(self) -> str:
        """The focused token of the rows."""
        return self.queries[self.row]

    @property
    def query_token(self) -> str:
        """The focused token of the rows, in words."""
        return f"“{self.query}” (position {self.row + 1})"

    @property
    def key_token(self) -> str:
        """The focused token of the columns, in words."""
        return f"“{self.keys[self.column]}” (position {self.column + 1})"

    @property
    def rows(self) -> tuple[str, ...]:
        """The tokens of the rows, with the token that each has to write."""
        return self.trace.rows(self.axes.query) if self.axes.writes else self.queries

    def shape(self, *letters: str) -> str:
        """Such as "(T, K) = (7, 8)"; Q and S stand for the two sides, by their own symbols."""
        names = {"Q": LENGTHS[self.axes.query], "S": LENGTHS[self.axes.key]}
        sizes = {
            "Q": len(self.queries),
            "S": len(self.keys),
            "K": self.model.d_head,
            "D": self.model.d_model,
            "V": len(self.trace.vocabulary),
            "T": len(self.trace.tgt_tokens),
        }
        left = ", ".join(names.get(letter, letter) for letter in letters)
        right = ", ".join(str(sizes[letter]) for letter in letters)
        return f"{left} = {right}" if len(letters) == 1 else f"({left}) = ({right})"

    def of_queries(self, name: str, values: Array, role: str = "plain", feature: str = "feature") -> Panel:
        """A vector for each row, (Q, n).

        Args:
            feature: the focus that its columns set; empty if they are not features of the result.
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

    def map(self, name: str, values: Array, role: str) -> Panel:
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
        )

    def score_strip(self, name: str, values: Array, codes: Array | None = None) -> Panel:
        """A score for each column, (S,), with the focused one marked."""
        return strip(name, values, self.keys, "scores", "key", codes, "column")

    def is_off(self, head: int) -> bool:
        """Whether a head of this attention is switched off."""
        return head in self.trace.interventions.heads_off_at(self.site)

    def weights_of(self, module: str, output: int) -> tuple[Array, float | None]:
        """The weights, (n_in,), and the bias of one output of a linear map."""
        parameters = self.trace.parameters
        bias = parameters.get(f"{module}.bias")
        return parameters[f"{module}.weight"][output], None if bias is None else float(bias[output])

    def norm(self, digits: Digits, norm: str, x: Array, made_of: Shown | None = None) -> Shown:
        """The norm of the focused feature of a vector, (D,).

        Args:
            norm: where it is in the parameters.
            made_of: the sum that is shown for that feature, if it is one.
        """
        gain, bias = (self.trace.parameters[f"{norm}.{name}"] for name in ("weight", "bias"))
        return latex.norm_numbers(digits, self.model, x, self.feature, gain, bias, made_of)


def spot_of(trace: ForwardTrace, site: str, head: int, focus: Focus) -> Spot:
    """The head and the cell; without a column, the one with the highest weight of its row."""
    model, axes, attention = trace.config.model, trace.axes[site], trace.attentions[site]
    queries, keys = trace.tokens(axes.query), trace.tokens(axes.key)
    row = min(focus.row, len(queries) - 1)
    column = int(attention.weights[head, row].argmax()) if focus.column is None else focus.column
    return Spot(
        trace=trace,
        site=site,
        head=head,
        model=model,
        axes=axes,
        attention=attention,
        stack_name=site.split(".")[0],
        queries=queries,
        keys=keys,
        row=row,
        column=min(column, len(keys) - 1),
        feature=min(focus.feature, model.d_model - 1),
        head_feature=min(focus.feature, model.d_head - 1),
    )
