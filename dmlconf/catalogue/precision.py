"""Precision rules as the catalogue states them, and the rule that an output of a case has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dmlconf.expressions import Expression, Namespace
from dmlconf.tensors.datatypes import DataType

__all__ = ["DEFAULT_FLUSHED", "PrecisionEntry", "PrecisionRule", "RuleKind", "Typical"]

DEFAULT_FLUSHED: Final = frozenset({DataType.FLOAT32})
"""Data types whose subnormals arithmetic may flush, by the Direct3D functional specification."""


class RuleKind(StrEnum):
    """How a rule compares an output.

    - `exact`: no difference
    - `ulp`, `absolute`, `relative`: a difference up to a limit
    - `accumulate`: a difference up to the likely rounding errors of a sum, in shares of its error
      scale (docs/bounds.md)
    - `interval`: between two values
    - `one of`: near one of several values

    `dmlconf.permitted` computes the error scale, the two values and the several values.
    """

    EXACT = "exact"
    ULP = "ulp"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"
    ACCUMULATE = "accumulate"
    INTERVAL = "interval"
    ONE_OF = "one of"


@dataclass(frozen=True, slots=True)
class PrecisionRule:
    """How far an output may be from the expected value.

    Attributes:
        limit: the maximum permitted error in the kind's unit; 0 for `exact`, `interval` and
            `one of`; for `accumulate` a factor on the permitted error of additions.
        products: for `accumulate`, how many terms are added up for one element.
        flushes: whether subnormal numbers may be treated as zero.
        typical: the largest share of the limit that measured devices use; None if the catalogue
            states none.
        absolute: for `relative`, a further permitted error: limit * |value| + absolute in all.
        signed_zeros: whether -0 and +0 are different numbers; under `exact` they always are.
    """

    kind: RuleKind
    limit: float
    source: str
    products: int = 1
    flushes: bool = False
    typical: float | None = None
    absolute: float = 0.0
    signed_zeros: bool = False


@dataclass(frozen=True, slots=True)
class Typical:
    """How much of a rule's limit real devices use; this never decides a verdict.

    Attributes:
        shares: the largest share of the limit, by data type of the output.
        measured: on which devices.
        when: the condition on the desc; None if it applies whenever the rule does.
    """

    shares: Mapping[DataType, float]
    measured: str
    when: Expression | None = None

    def share(self, names: Namespace, data_type: DataType) -> float | None:
        """Return the share for an output of this data type; None if there is none for the desc."""
        holds = self.when is None or bool(self.when.evaluate(names))
        return self.shares.get(data_type) if holds else None


@dataclass(frozen=True, slots=True)
class PrecisionEntry:
    """A rule as the catalogue states it, for all cases that meet a condition.

    Attributes:
        limit: the limit of data types that `limits` does not name.
        limits: limits by data type of the output.
        when: the condition on the desc; None if the entry applies to all other descs.
        products: for `accumulate`, the number of terms, as an expression over the desc.
        flushed: data types whose subnormals may be treated as zero.
        flushed_by: for an output such as an index, the input whose data type is looked up in
            `flushed`. If None, the output's own data type is looked up, except by `exact` rules.
        typical: how much of the limit real devices use, if that is little.
    """

    kind: RuleKind
    source: str
    limit: float = 0
    limits: Mapping[DataType, float] | None = None
    when: Expression | None = None
    products: Expression | None = None
    flushed: frozenset[DataType] = DEFAULT_FLUSHED
    flushed_by: str | None = None
    typical: Typical | None = None
    signed_zeros: bool = False

    def holds(self, names: Namespace) -> bool:
        """Return whether the entry's condition is met."""
        return self.when is None or bool(self.when.evaluate(names))

    def rule(self, names: Namespace, data_type: DataType) -> PrecisionRule:
        """Return the rule of an output of this data type."""
        return PrecisionRule(
            kind=self.kind,
            limit=(self.limits or {}).get(data_type, self.limit),
            source=self.source,
            products=max(1, int(self.products.evaluate(names))) if self.products else 1,
            flushes=self._flushes(names, data_type),
            typical=self.typical.share(names, data_type) if self.typical else None,
            signed_zeros=self.signed_zeros,
        )

    def _flushes(self, names: Namespace, data_type: DataType) -> bool:
        if self.flushed_by is not None:
            return names[self.flushed_by].DataType in self.flushed
        return self.kind is not RuleKind.EXACT and data_type in self.flushed
