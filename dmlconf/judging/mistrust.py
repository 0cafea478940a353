"""Find outputs that meet their rule, but look as if the operator had not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import RuleKind
from dmlconf.precision.allowance import Allowance, Interval, permitted_intervals
from dmlconf.precision.room import permitted_ends
from dmlconf.precision.rules import undefined
from dmlconf.precision.ulp import ulp_distance
from dmlconf.tensors.datatypes import Array, bits_of
from dmlconf.verdicts.verdict import ReasonKind

__all__ = ["suspicions"]

_LEAST_ELEMENTS: Final = 8
"""Fewer elements may be all zeros, or equal an input's, by chance."""

_NEAR_ULP: Final = 16
"""A right value within this many ULP of an input's value may be rounded to it."""

_CANCELLED: Final = 2.0**-10
"""A kernel may give 0 for values below this share of their error scale, or of the length of their
interval: a sum that is stored in FLOAT16 loses up to 2^-10 of its size."""

_ADDS_1: Final = frozenset(
    {
        "ACTIVATION_SCALED_TANH",
        "ACTIVATION_TANH",
        "ELEMENT_WISE_ASINH",
        "ELEMENT_WISE_ATANH",
        "ELEMENT_WISE_TANH",
    }
)
"""Operators whose kernels add 1 to the input or its exponential, as measured on DirectML."""

_LOST_BESIDE_1: Final = 0.25
"""The operators in `_ADDS_1` may give 0 for values below this share of the length of their
interval. TANH of 8e-8 is 0, and its interval is 4.8e-7 long."""


def suspicions(
    case: Case, name: str, actual: Array, allowance: Allowance
) -> Iterator[tuple[ReasonKind, str]]:
    """Yield reasons to mistrust an output that meets its rule, such as zeros everywhere."""
    if actual.size < _LEAST_ELEMENTS:
        return
    if not np.count_nonzero(actual) and _most(_not_zero(case, name, allowance)):
        yield ReasonKind.ALL_ZEROS, f"{name} is all zeros, where most of it must not be"
    for source, array in case.inputs().items():
        if array.shape != actual.shape or array.dtype != actual.dtype:
            continue
        same_bits = np.array_equal(bits_of(actual), bits_of(array))
        if same_bits and _most(_not_copied(case, name, allowance, array)):
            message = f"{name} is a copy of {source}, where most of it must not be"
            yield ReasonKind.INPUT_COPIED, message


def _not_zero(case: Case, name: str, allowance: Allowance) -> Array:
    """Return which elements a right kernel never returns as 0.

    They are not open, the kernel cannot flush or round them to 0, their terms cannot cancel, and 0
    is not among their candidates.
    """
    expected, rule = allowance.right, case.rule(name)
    kind = rule.kind
    is_float = expected.dtype.kind == "f"
    certain: Array = (
        np.abs(expected) >= np.finfo(expected.dtype).tiny if is_float else expected != 0
    )
    if kind == RuleKind.ACCUMULATE and is_float and allowance.errors is not None:
        sums = allowance.errors.sums.reshape(expected.shape)
        certain &= np.abs(expected) > _CANCELLED * sums
        for other in allowance.errors.others:
            certain &= other.reshape(expected.shape) != 0
    operators = case.graph.operators if case.nodes else (case.operator_name,)
    share = _CANCELLED if _ADDS_1.isdisjoint(operators) else _LOST_BESIDE_1
    for lowest, highest in _intervals(kind, allowance):
        if kind == RuleKind.ONE_OF:
            certain &= ~((lowest <= 0) & (highest >= 0))
        if is_float:
            with np.errstate(all="ignore"):
                length = np.subtract(highest, lowest, dtype=np.float64)
                certain &= np.abs(expected) > share * length
    if rule.flushes and is_float and allowance.flushed is not None:
        # A kernel may take a subnormal input for 0.
        certain &= allowance.flushed[1] != 0
    return certain & ~_open(case, name, allowance)


def _not_copied(case: Case, name: str, allowance: Allowance, source: Array) -> Array:
    """Return which elements a right kernel never returns equal to the input's element."""
    expected, rule = allowance.right, case.rule(name)
    apart = _apart(expected, source)
    if rule.kind == RuleKind.EXACT:
        return apart
    if rule.kind == RuleKind.ACCUMULATE and allowance.errors is not None:
        for other in allowance.errors.others:
            apart &= _apart(other.reshape(expected.shape), source)
    if rule.kind == RuleKind.ONE_OF:
        for least, greatest in _intervals(rule.kind, allowance):
            apart &= ~((least <= source) & (source <= greatest))
    return apart & ~_open(case, name, allowance)


def _open(case: Case, name: str, allowance: Allowance) -> Array:
    right = allowance.right
    ends = permitted_ends(right.ravel(), case.rule(name), allowance)
    return undefined(*ends).reshape(right.shape)


def _intervals(kind: RuleKind, allowance: Allowance) -> Iterator[Interval]:
    shape = allowance.right.shape
    for least, greatest in permitted_intervals(kind, allowance):
        yield least.reshape(shape), greatest.reshape(shape)


def _apart(expected: Array, source: Array) -> Array:
    is_float = expected.dtype.kind == "f"
    apart: Array = ulp_distance(expected, source) > _NEAR_ULP if is_float else expected != source
    return apart


def _most(elements: Array) -> bool:
    return bool(2 * np.count_nonzero(elements) > elements.size)
