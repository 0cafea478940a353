"""The bytes of a case's buffers, and the permitted values of its output elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dmlconf.cases.model import Case, ExpectedOutputs
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.precision import RuleKind
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.allowance import Interval, permitted_intervals
from dmlconf.precision.room import permitted_ends
from dmlconf.precision.rules import within
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.layout import element_offsets, packed_strides

__all__ = ["Expected", "buffer_bytes", "expected_of", "offsets_of"]


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected values of an output.

    Attributes:
        values: the elements that the case states or else the reference computes, shaped like the
            tensor's Sizes.
        permitted: intervals (lowest, highest) of the same shape; an element in one of the intervals
            is right. Other elements may be right, too, such as a subnormal result flushed to zero.
            From NaN to NaN only NaN is permitted, from -infinity to infinity any value.
        signed_zeros: whether -0 and 0 are different numbers.
    """

    values: Array
    permitted: tuple[Interval, ...]
    signed_zeros: bool


def buffer_bytes(tensor: TensorDesc, values: Array) -> bytes:
    """Return the bytes of a tensor's buffer, with zeros where no element lies.

    The length of the buffer is TotalTensorSizeInBytes rounded up to a multiple of 4.
    """
    size = -(-tensor.TotalTensorSizeInBytes // 4) * 4
    elements = np.zeros(size * 8 // tensor.DataType.bits, tensor.DataType.dtype)
    elements[offsets_of(tensor)] = values.ravel()
    if tensor.DataType.bits < 8:  # The low half of each byte is the first element.
        halves = elements.view(np.uint8) & 0x0F
        return (halves[0::2] | halves[1::2] << 4).tobytes()
    return elements.tobytes()


def offsets_of(tensor: TensorDesc) -> list[int]:
    """Return the offset of each element in the buffer, in elements, in row-major order."""
    strides = tensor.Strides or packed_strides(tensor.Sizes)
    offsets: list[int] = element_offsets(tensor.Sizes, strides).ravel().tolist()
    return offsets


def expected_of(case: Case, *, half: bool = False) -> Mapping[str, Expected]:
    """Return the expected outputs of a case that must not be rejected.

    Args:
        case: the reference computes the outputs that the case does not state.
        half: whether intermediate results may be FLOAT16.
    """
    stated = case.expectation.outputs if isinstance(case.expectation, ExpectedOutputs) else {}
    outputs = {**evaluate(case), **stated}
    allowances = CaseAllowances(case, half_precision=half)
    return {name: _expected(case, name, array, allowances) for name, array in outputs.items()}


def _expected(case: Case, name: str, values: Array, allowances: CaseAllowances) -> Expected:
    own = case.rule(name)
    rule = case.narrower_rule(name) or own
    allowance = allowances.of(name)
    flat = values.ravel()
    try:
        intervals: Sequence[Interval] = permitted_intervals(rule.kind, allowance)
        if rule.kind is not RuleKind.ONE_OF:
            intervals = (permitted_ends(flat, rule, allowance),)
    except (ValueError, LookupError):  # The rule may need what the allowance does not have.
        intervals = ((flat, flat),)
    pairs = [(np.ravel(lowest), np.ravel(highest)) for lowest, highest in intervals]
    # Where the expected value is in no interval, only this value is permitted.
    known = np.logical_or.reduce([within(flat, *pair) for pair in pairs])
    permitted = (
        [np.where(known, end, flat).reshape(values.shape) for end in pair] for pair in pairs
    )
    pairs = [(lowest, highest) for lowest, highest in permitted]
    signed_zeros = any(each.kind is RuleKind.EXACT or each.signed_zeros for each in (own, rule))
    return Expected(values, tuple(pairs), signed_zeros)
