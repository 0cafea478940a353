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
        rows: a text for each row of cells, with a digit for each cell: 0 for equal bits or two NaN;
            1 for an error below 1e-8 of the largest expected number, up to 9 for 0.1 or more, or if
            the error is not finite. The largest counts as 1 if it is 0.
        axes: how many of the output's axes, from the first, the rows run over; the columns run over
            the others.
    """

    rows: tuple[str, ...]
    axes: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures(Positional):
    """What was measured when an output was compared, as `schemas/run-log.schema.json` describes it.

    Logs of older versions have None for `margin`, `source`, `expectation`, `open` and `loose`.

    Attributes:
        differing: how many elements are outside the rule.
        worst_ulp: the greatest distance in ULP; None for integers, infinite if a NaN is expected
            and a number returned, or the reverse.
        rule: the kind of rule, such as `ulp`.
        limit: as in `PrecisionRule`.
        margin: the share of the limit that the worst element or, if more, the mean square uses;
            at least 1 if the output is outside the rule.
        source: where the rule comes from.
        open: how many elements any value would satisfy.
        loose: how many elements have a room of more than a tenth of the output's largest number.
        typical: the largest share of the limit that measured devices use; None if not stated.
        typical_margin: the share of the limit that the worst element uses, divided by `typical`.
        products: for `accumulate`, how many terms are added up for each element.
        sample: how many elements a recording has, if it does not have all.
        histogram: numbers of elements by their distance in ULP, as in `Comparison`, with text as
            keys: `{"0": 98, "4": 2}` says that 2 elements are 4 to 7 ULP off; `NaN` is the key of
            a NaN against a number.
        same_bits: for a relation, how many elements have the same bits in both forms.
        unfused_same_bits: for a graph, how many elements have the bits that its nodes return when
            they run one by one.
        by_nodes: for a graph, how many elements are outside what its rules permit although each
            node is right for the inputs that it got, so that the verdict counts them as right.
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
