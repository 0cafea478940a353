"""Other ways in which a right device may evaluate the nodes of a graph.

1e-40 may be flushed to 0, so 1 / 1e-40 may be infinity. MIN(0, -0) may be 0 or -0, so
1 / MIN(0, -0) may be infinity or -infinity. So the whole graph is also evaluated

- with zeros instead of subnormal FLOAT32 inputs and attributes, for nodes that may flush them;
- with zeros of the other sign, for nodes whose rule compares numbers and not bits.

The results of each alternative are candidates of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import RuleKind
from dmlconf.graphs.model import Node
from dmlconf.permitted.graphs.bands import AllowanceOf
from dmlconf.permitted.subnormals import without_subnormals
from dmlconf.precision.allowance import Allowance
from dmlconf.reference.graph_evaluation import Evaluate, NodeValues, evaluate_nodes
from dmlconf.tensors.datatypes import Array

__all__ = ["PASS_SIGNS_ON", "Alternative", "alternatives"]

_MOST_COMBINED: Final = 3
"""If up to this many nodes may flush subnormal numbers, each combination is tried."""

_MOST_ALONE: Final = 8
"""If more nodes may flush, all nodes together are tried, and each of the first 8 alone."""

_BY_CHANCE: Final = 4
"""The number of evaluations in which each zero has a random sign."""

PASS_SIGNS_ON: Final = frozenset(
    {
        "ACTIVATION_HARD_SIGMOID",
        "ACTIVATION_RELU",
        "ACTIVATION_SIGMOID",
        "ACTIVATION_SOFTMAX1",
        "ACTIVATION_TANH",
        "CONVOLUTION",
        "ELEMENT_WISE_ABS",
        "ELEMENT_WISE_ADD",
        "ELEMENT_WISE_EXP",
        "ELEMENT_WISE_IDENTITY",
        "ELEMENT_WISE_MULTIPLY",
        "ELEMENT_WISE_NEGATE",
        "ELEMENT_WISE_SUBTRACT",
        "GEMM",
        "JOIN",
        "SLICE1",
        "SPLIT",
    }
)
"""Operators whose results for 0 and for -0 are equal, or are zeros of different signs."""

Signs = Callable[[Array, int], Array]
"""Takes an output and its node's number. Returns 1.0 or -1.0 for each element: the sign that the
element gets if it is 0."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to evaluate the nodes of a graph, and the allowances of their outputs."""

    evaluate: Evaluate
    allowance_of: AllowanceOf


def alternatives(
    case: Case, evaluate: Evaluate, allowance_of: AllowanceOf, right: NodeValues
) -> Iterator[Alternative]:
    """Yield the alternatives that may permit other outputs of the graph."""
    for flushing in _flushing(right):
        other = _with_zeros_for_subnormals(evaluate, allowance_of, flushing)
        # Flushing by all nodes counts even if no output changes: its allowances may be wider, such
        # as that of a quotient by a quantization's scale that becomes 0.
        if flushing is None or _differ(right, evaluate_nodes(case, other.evaluate)):
            yield other
    if not _signs_may_show(case, right):
        return
    for signs in _signs():
        if _differ(right, _with_signs(case, evaluate, right, signs)):
            yield Alternative(_signed(evaluate, right, signs), allowance_of)


def _differ(one: NodeValues, other: NodeValues) -> bool:
    """Return whether two evaluations differ in more than signs of zero."""
    return any(
        values is not other.outputs[slot]
        and not np.array_equal(values, other.outputs[slot], equal_nan=values.dtype.kind == "f")
        for slot, values in one.outputs.items()
    )


def _flushing(right: NodeValues) -> Iterator[frozenset[str] | None]:
    """Yield sets of nodes that flush subnormal numbers, by identifier; None means all that may."""
    reading = [
        case.identifier
        for case in right.cases.values()
        if _may_flush(case) and without_subnormals(case) is not case
    ]
    if not reading:
        return
    yield None
    if len(reading) > _MOST_COMBINED:
        yield from (frozenset({name}) for name in reading[:_MOST_ALONE])
        return
    for count in range(1, len(reading) + 1):
        yield from map(frozenset, combinations(reading, count))


def _may_flush(case: Case) -> bool:
    return any(case.rule(name).flushes for name in case.outputs())


def _with_zeros_for_subnormals(
    evaluate: Evaluate, allowance_of: AllowanceOf, nodes: frozenset[str] | None
) -> Alternative:
    def read(case: Case) -> Case:
        chosen = _may_flush(case) if nodes is None else case.identifier in nodes
        return without_subnormals(case) if chosen else case

    def outputs(case: Case) -> Mapping[str, Array]:
        return evaluate(read(case))

    def allowance(case: Case, output: str) -> Allowance:
        return allowance_of(read(case), output)

    return Alternative(outputs, allowance)


def _signs() -> Sequence[Signs]:
    def by_chance(sample: int) -> Signs:
        def signs(values: Array, number: int) -> Array:
            generator = np.random.Generator(np.random.PCG64([sample, number]))
            chosen: Array = generator.choice((-1.0, 1.0), values.shape)
            return chosen

        return signs

    return (
        lambda values, number: -np.copysign(1.0, values),
        lambda values, number: np.ones(values.shape),
        lambda values, number: -np.ones(values.shape),
        *map(by_chance, range(_BY_CHANCE)),
    )


def _with_zeros_of(values: Array, signs: Signs, number: int) -> Array:
    zero = values == 0
    if not zero.any():
        return values
    signed = np.copysign(values, signs(values, number).astype(values.dtype))
    return np.where(zero, signed, values)


def _sign_is_open(case: Case, output: str, values: Array) -> bool:
    return values.dtype.kind == "f" and case.rule(output).kind is not RuleKind.EXACT


def _signs_may_show(case: Case, right: NodeValues) -> bool:
    """Return whether later nodes may compute other numbers from a zero of the other sign."""
    links = case.graph.intermediate_edges
    readers = {link.to_node for link in links}
    if {right.cases[name].operator_name for name in readers} <= PASS_SIGNS_ON:
        return False
    read = {(link.from_node, link.from_tensor) for link in links}
    return any(
        (name, tensor) in read and not values.all() and _sign_is_open(own, tensor, values)
        for name, own in right.cases.items()
        for tensor in own.outputs()
        for values in [right.outputs[name, tensor]]
    )


def _with_signs(case: Case, evaluate: Evaluate, right: NodeValues, signs: Signs) -> NodeValues:
    """Return the nodes' outputs for other signs of zeros, more quickly than `_signed`."""
    numbers = _numbers(right)

    def store(node: Node, own: Case, tensor: str, values: Array) -> Array:
        if not _sign_is_open(own, tensor, values):
            return values
        return _with_zeros_of(values, signs, numbers[own.identifier])

    with np.errstate(all="ignore"):
        return evaluate_nodes(case, evaluate, store=store, earlier=right)


def _signed(evaluate: Evaluate, right: NodeValues, signs: Signs) -> Evaluate:
    numbers = _numbers(right)

    def outputs(case: Case) -> Mapping[str, Array]:
        return {
            name: _with_zeros_of(values, signs, numbers[case.identifier])
            if _sign_is_open(case, name, values)
            else values
            for name, values in evaluate(case).items()
        }

    return outputs


def _numbers(right: NodeValues) -> Mapping[str, int]:
    return {case.identifier: number for number, case in enumerate(right.cases.values())}
