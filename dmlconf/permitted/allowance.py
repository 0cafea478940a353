"""What precision rules permit besides the reference's outputs, computed from the same case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import RuleKind
from dmlconf.permitted.functions import Part, permitted_function
from dmlconf.permitted.graphs.allowance import graph_candidates
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.subnormals import without_subnormals
from dmlconf.precision.allowance import Allowance, Interval
from dmlconf.reference.evaluation import arguments, evaluate
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample

__all__ = ["CaseAllowances"]


class CaseAllowances:
    """Gives the allowance of each output of one case; each part is computed when first needed.

    Attributes:
        permitted: expected values by output that are known to be permitted around the reference's.
    """

    def __init__(
        self,
        case: Case,
        *,
        half_precision: bool = False,
        right: Mapping[str, Array] | None = None,
    ) -> None:
        """Remember the case.

        Args:
            case: the case.
            half_precision: whether the backend may compute FLOAT16 outputs in FLOAT16 throughout.
            right: what the reference computes, where it has just done so.
        """
        self.half_precision = half_precision
        self.permitted: dict[str, Array | Sample] = {}
        self._case = case
        self._outputs = list(case.outputs())
        self._right = right

    def of(self, output: str) -> _OutputAllowance:
        """Return the allowance of an output tensor."""
        return _OutputAllowance(self, self._outputs.index(output), output)

    def accumulates(self, output: str) -> bool:
        """Return whether the rule of an output is `accumulate`."""
        return self._case.rule(output).kind is RuleKind.ACCUMULATE

    @cached_property
    def right(self) -> dict[str, Array]:
        """What the reference computes, by tensor."""
        if self._right is not None:
            return dict(self._right)
        return evaluate(self._case, self._case.inputs())

    @cached_property
    def error_scales(self) -> tuple[ErrorScale, ...]:
        """The error scales, by output."""
        parts = self._call("error_scale")
        return tuple(map(ErrorScale.of, parts if isinstance(parts, tuple) else (parts,)))

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """The least and the greatest right values, by output."""
        intervals = self._call("interval")
        return intervals if isinstance(intervals[0], tuple) else (intervals,)

    @cached_property
    def candidates(self) -> tuple[Sequence[Interval], ...]:
        """The intervals of which an element lies in at least one, by output."""
        if isinstance(self._case, GraphCase):
            return tuple(graph_candidates(self._case, evaluate, self._of_node).values())
        candidates = self._call("candidates")
        return candidates if isinstance(candidates[0][0], tuple) else (candidates,)

    @cached_property
    def flushed(self) -> tuple[dict[str, Array], dict[str, Array]] | None:
        """The outputs, and those with zeros for subnormal inputs and attributes; None without."""
        without = without_subnormals(self._case)
        return None if without is self._case else (self.right, evaluate(without))

    def _of_node(self, node: Case, output: str) -> Allowance:
        return CaseAllowances(node, half_precision=self.half_precision).of(output)

    def _call(self, part: Part) -> Any:
        function = permitted_function(self._case.operator_name, part)
        return function(**arguments(self._case.operator, self._case, self._case.inputs()))


class _OutputAllowance:
    """The allowance of one output."""

    def __init__(self, case: CaseAllowances, index: int, name: str) -> None:
        self._of_case, self._index, self._name = case, index, name

    @property
    def half_precision(self) -> bool:
        """Whether the backend may compute FLOAT16 outputs in FLOAT16 throughout."""
        return self._of_case.half_precision

    def right(self) -> Array:
        """Return what the reference computes."""
        return self._of_case.right[self._name]

    def error_scale(self) -> Array | None:
        """Return what the rounding errors of sums are a share of, FLOAT64."""
        return self._error_scale.sums

    def stored(self) -> Array | None:
        """Return the magnitudes of intermediate FLOAT16 values, FLOAT64; None if there are none."""
        return self._whole(self._error_scale.stored)

    def stored_deviation(self) -> Array | None:
        """Return the root of the sum of the squares of `stored`; None for `stored` itself."""
        return self._whole(self._error_scale.deviation)

    def overflows(self) -> Array | None:
        """Return where an intermediate of a finite result may overflow; None for nowhere."""
        return self._whole(self._error_scale.overflows)

    def _whole(self, part: Array | None) -> Array | None:
        return None if part is None else np.broadcast_to(part, self._error_scale.sums.shape)

    def quantum(self) -> float:
        """Return a power of two that all terms of a sum are multiples of; 0 for none."""
        return self._error_scale.quantum

    def terms_vary(self) -> bool:
        """Return whether each sum has many terms whose roundings are independent."""
        return self._error_scale.terms_vary

    def sums_shared(self) -> bool:
        """Return whether many elements share the errors of one sum."""
        return self._error_scale.sums_shared

    def others(self) -> tuple[Array, ...]:
        """Return outputs whose elements are as right as the reference's."""
        return self._error_scale.others

    @property
    def _error_scale(self) -> ErrorScale:
        return self._of_case.error_scales[self._index]

    def interval(self) -> Interval | None:
        """Return the least and the greatest right values."""
        return self._of_case.intervals[self._index]

    def candidates(self) -> Sequence[Interval]:
        """Return the intervals of which an element lies in at least one; of sums the spans."""
        if self._of_case.accumulates(self._name):
            return self._error_scale.spans
        return self._of_case.candidates[self._index]

    def flushed(self) -> tuple[Array, Array] | None:
        """Return the right values with subnormal inputs as they are, and with zeros for them."""
        pair = self._of_case.flushed
        return None if pair is None else (pair[0][self._name], pair[1][self._name])
