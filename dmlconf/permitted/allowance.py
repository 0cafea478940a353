"""Compute what the precision rules of a case permit besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dmlconf.cases.model import HALF_PRECISION_TAG, Case
from dmlconf.permitted.functions import Part, permitted_function
from dmlconf.permitted.subnormals import without_subnormals
from dmlconf.precision.allowance import Allowance, Interval
from dmlconf.reference.evaluation import arguments, evaluate
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample

if TYPE_CHECKING:
    from dmlconf.catalogue.precision import PrecisionRule
    from dmlconf.permitted.numbers.error_scale import ErrorScale
    from dmlconf.precision.room import Room

__all__ = ["CaseAllowances"]


class CaseAllowances:
    """The allowances of one case's outputs; each part is computed when first needed.

    Attributes:
        permitted: by output, the last expected values that `contradiction_of` found permitted.
        rooms: by output, the last expected values and the last rule whose room was computed, and
            that room.
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
            half_precision: whether the backend may compute FLOAT16 outputs in FLOAT16 throughout,
                as it always may for a case with the tag `HALF_PRECISION_TAG`.
            right: the reference's outputs; if it is None, they are computed when needed.
        """
        self.permitted: dict[str, Array | Sample] = {}
        self.rooms: dict[str, tuple[Array, PrecisionRule, Room]] = {}
        half_precision = half_precision or HALF_PRECISION_TAG in case.tags
        self._parts = _Parts(case, half_precision=half_precision, right=right)
        self._allowances: dict[str, Allowance] = {}

    @property
    def half_precision(self) -> bool:
        """Whether the backend may compute FLOAT16 outputs in FLOAT16 throughout."""
        return self._parts.half_precision

    @property
    def right(self) -> dict[str, Array]:
        """The reference's outputs, by tensor."""
        return self._parts.right

    @property
    def undefined(self) -> Mapping[str, Array]:
        """Which elements of a graph's outputs depend on one that is open, may overflow or be NaN.

        Empty for a case of one operator; outputs without such elements are left out.
        """
        return self._parts.undefined

    @property
    def error_scales(self) -> tuple[ErrorScale, ...]:
        """The error scales, one for each output, in their order.

        Raises:
            MissingFunction: the operator has no error scale.
            UnknownOperatorError: the case is a graph.
        """
        return self._parts.error_scales

    def take_right(self, right: Mapping[str, Array] | None) -> None:
        """Keep the reference's outputs, which the caller has computed, unless they are known."""
        self._parts.take_right(right)

    def of(self, output: str) -> Allowance:
        """Return the allowance of an output tensor: the same object at every call.

        Its `errors`, `interval` and `candidates` raise MissingFunction if no rule of the operator
        needs them. For a graph, `errors` and `interval` raise UnknownOperatorError.

        Raises:
            ValueError: the case has no such output.
        """
        if output not in self._allowances:
            self._allowances[output] = self._parts.allowance(output)
        return self._allowances[output]


class _Parts:
    """The parts from which the allowances of one case are computed.

    They do not refer to the allowances: no cycle keeps arrays in memory.
    """

    def __init__(
        self, case: Case, *, half_precision: bool, right: Mapping[str, Array] | None
    ) -> None:
        self.half_precision = half_precision
        self._case = case
        self._outputs = list(case.outputs())
        self._right = right

    def allowance(self, output: str) -> Allowance:
        index = self._outputs.index(output)

        def flushed() -> tuple[Array, Array] | None:
            pair = self.flushed
            return None if pair is None else (pair[0][output], pair[1][output])

        return Allowance(
            right=lambda: self.right[output],
            errors=lambda: self.error_scales[index],
            interval=lambda: self.intervals[index],
            candidates=lambda: self.candidates[index],
            flushed=flushed,
            in_range=lambda: None if self.in_range is None else self.in_range[output],
            half_precision=self.half_precision,
        )

    def take_right(self, right: Mapping[str, Array] | None) -> None:
        self._right = right if self._right is None else self._right

    @cached_property
    def right(self) -> dict[str, Array]:
        if self._right is not None:
            return dict(self._right)
        return evaluate(self._case, self._case.inputs())

    @cached_property
    def error_scales(self) -> tuple[ErrorScale, ...]:
        from dmlconf.permitted.numbers.error_scale import ErrorScale  # Only sums have them.

        parts = self._call("error_scale")
        return tuple(map(ErrorScale.of, parts if isinstance(parts, tuple) else (parts,)))

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        intervals = self._call("interval")
        return intervals if isinstance(intervals[0], tuple) else (intervals,)

    @cached_property
    def candidates(self) -> tuple[Sequence[Interval], ...]:
        if self._case.nodes:
            # Few cases are graphs.
            from dmlconf.permitted.graphs.allowance import graph_candidates

            return tuple(graph_candidates(self._case, evaluate, self._of_node).values())
        candidates = self._call("candidates")
        return candidates if isinstance(candidates[0][0], tuple) else (candidates,)

    @cached_property
    def undefined(self) -> Mapping[str, Array]:
        if not self._case.nodes:
            return {}
        from dmlconf.permitted.graphs.allowance import undefined_outputs

        return undefined_outputs(self._case, evaluate, self._of_node)

    @cached_property
    def flushed(self) -> tuple[dict[str, Array], dict[str, Array]] | None:
        """What `Allowance.flushed` needs, for all outputs."""
        without = without_subnormals(self._case)
        return None if without is self._case else (self.right, evaluate(without))

    @cached_property
    def in_range(self) -> dict[str, Array] | None:
        from dmlconf.permitted.float32_range import outputs_in_float32_range  # Few cases need it.

        return outputs_in_float32_range(self._case, self.right)

    def _of_node(self, node: Case, output: str) -> Allowance:
        return CaseAllowances(node, half_precision=self.half_precision).of(output)

    def _call(self, part: Part) -> Any:
        function = permitted_function(self._case.operator_name, part)
        return function(**arguments(self._case.entry, self._case, self._case.inputs()))
