"""The figures that a verdict keeps of each output that was compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dmlconf.cases.model import Provenance
from dmlconf.verdicts.record import Positional

__all__ = ["ErrorMap", "Figures"]


@dataclass(frozen=True, slots=True)
class ErrorMap:
    """The worst error in each cell of a grid over an output.

    Attributes:
        rows: a text for each row of cells, with a digit for each cell. 0 stands for equal bits or
            two NaN. 1 stands for an error below 1e-8 times the size of the largest finite expected
            number, and each further digit for ten times more; 9 for 0.1 times or more, and for an
            error that is not finite. If that size is 0, it counts as 1.
        axes: how many of the output's first axes the rows run over; the columns run over the rest.
    """

    rows: tuple[str, ...]
    axes: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures(Positional):
    """The results of comparing an output, as `schemas/run-log.schema.json` describes them.

    Logs of older versions have None for `margin`, `source`, `expectation`, `open` and `loose`.

    Attributes:
        differing: how many elements are outside the rule.
        worst_ulp: the greatest distance in ULP; None for integers, infinite for a NaN against a
            number.
        rule: the kind of rule, such as `ulp`.
        limit: as in `PrecisionRule`.
        margin: the share of the limit that is used by the worst element or, if that is more, by the
            mean of squared errors, to 4 digits; at least 1 outside the rule.
        source: where the rule comes from.
        open: for how many elements any value is right.
        loose: how many elements have a room of more than a tenth of the largest finite magnitude.
        typical: the largest share of the limit that measured devices use.
        typical_margin: the share of the limit that the worst element uses, divided by `typical`.
        products: for `accumulate`, how many terms are added up for each element.
        sample: how many elements a recording has, if it does not have all.
        histogram: numbers of elements by their distance in ULP, as in `Comparison`, with text as
            keys. `{"0": 98, "4": 2}`: 98 elements are equal, and 2 are off by 4 to 7 ULP. `NaN` is
            the key of a NaN against a number.
        same_bits: for a relation, how many elements have the same bits in both forms of the graph.
        unfused_same_bits: for a graph, how many elements have the same bits in the unfused run.
        by_nodes: for a graph, how many elements are outside the rules, but count as right since
            each node is right for the inputs that it got.
    """

    elements: int
    differing: int
    worst_ulp: float | None
    rule: str
    limit: float
    margin: float | None = None
    source: str | None = None
    expectation: Provenance | None = None
    open: int | None = None
    loose: int | None = None
    typical: float | None = None
    typical_margin: float | None = None
    products: int | None = None
    sample: int | None = None
    worst_coordinates: tuple[int, ...] | None = None
    histogram: Mapping[str, int] = field(default_factory=dict)
    same_bits: int | None = None
    unfused_same_bits: int | None = None
    error_map: ErrorMap | None = None
    by_nodes: int | None = None
