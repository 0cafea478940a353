"""The figures that a verdict has of each compared output."""

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
            two NaN, 1 for an error below 1e-8 times the size of the largest finite expected number
            (below 1e-8 if that is 0), each further digit for ten times more, and 9 for any larger
            error.
        axes: how many of the output's first axes the rows run over; columns run over the others.
    """

    rows: tuple[str, ...]
    axes: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures(Positional):
    """The results of comparing an output, as `schemas/run-log.schema.json` describes them.

    In old logs, `margin`, `source`, `expectation`, `open` and `loose` are None.

    Attributes:
        differing: how many elements are outside the rule.
        worst_ulp: None for integers, infinite for a NaN against a number.
        rule: the kind of rule, such as `ulp`.
        limit: as in `PrecisionRule`.
        margin: the share of its limit that the worst element or the mean of squared errors uses,
            whichever is more, to 4 digits; at least 1 outside the rule.
        source: where the rule comes from.
        open: how many elements are open; likewise `loose`.
        typical: the largest share of the limit that measured devices use.
        typical_margin: the share of the limit that the worst element uses, divided by `typical`.
        products: how many terms the rule `accumulate` adds up for each element.
        sample: how many elements a recording has, if it does not have all.
        histogram: how many elements have each distance in ULP. `{"0": 98, "4": 2}` stands for 98
            equal elements, and 2 that are off by 4 to 7 ULP; `NaN` for a NaN against a number.
        same_bits: how many elements have the same bits in both graphs of a relation.
        unfused_same_bits: how many elements of a graph have the same bits in the unfused run.
        by_nodes: how many elements of a graph count as right only since each node is right for the
            inputs that it got.
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
