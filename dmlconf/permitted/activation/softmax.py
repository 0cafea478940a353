"""Permitted errors of SOFTMAX, LOG_SOFTMAX and HARDMAX, and of a softmax fused into GEMM.

A share is an output of SOFTMAX: a power of e divided by the sum of the powers. The shares of 0 and
1 are 1 / (1 + e) = 0.27 and 0.73. For error scales, relative errors of shares and powers are
counted in half ULPs of FLOAT32, 2^-24.

Derived in docs/bounds.md, Softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.accuracy import EXP2_ERROR, EXP2_HALVES, LOG2_ERROR
from dmlconf.permitted.numbers.comparison_in_parts import compared_in_parts
from dmlconf.permitted.numbers.error_scale import ErrorScale, store_sizes
from dmlconf.permitted.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.permitted.numbers.span import Span
from dmlconf.permitted.numbers.terms import alike, steps_beside_sum
from dmlconf.precision.accumulation import roundings
from dmlconf.precision.allowance import Interval
from dmlconf.reference.activation.softmax import (
    activation_hardmax1,
    distinct_axes,
    row_powers,
    row_shares,
)
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import FLOAT16_EPSILON, LEAST_NORMAL_FLOAT16

__all__ = [
    "activation_hardmax1_candidates",
    "activation_log_softmax1_candidates",
    "activation_softmax1_error_scale",
    "change_of_shares",
    "fused_softmax_error_scale",
]

_PARTS: Final = 8
"""DirectML 1.8.0 to 1.9.1 add up a FLOAT16 row of 10, 12, 14 and so on elements in 8 parts. Part i
is the sum of the exponentials of the elements i, i + 8, i + 16 and so on. The parts and their sum
are stored in FLOAT16. Here odd numbers of more than 8 elements may have parts, too."""

_NOTHING: Final = 200.0
"""The exponential of numbers below -200 is 0 in FLOAT32."""


def activation_softmax1_error_scale(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]
) -> ErrorScale:
    """Return the error scale: the outputs, enlarged by the errors of the powers and the quotient.

    Derived in docs/bounds.md, Softmax.

    Source: Direct3D 11.3 functional specification: exp2 has a relative error of 2^-21, and its
    argument is rounded; exp2 of 0 is 1. Measured: kernels store the sum of the powers in FLOAT16,
    and DirectML 1.8.0 to 1.9.1 also `_PARTS` of it.
    """
    with np.errstate(all="ignore"):
        shares, below = row_shares(InputTensor, Axes)
        powers = np.exp(below)
        total = powers.sum(distinct_axes(Axes), keepdims=True)
        exact = ((below == 0) | (powers == 0)).all(distinct_axes(Axes), keepdims=True)
        in_parts = np.where(exact | (below.size // total.size <= _PARTS), 0.0, 1.0)
        held = shares * (store_sizes(total, exact) / total + in_parts)
        steps = _steps(shares, below, Axes)
        beside = steps_beside_sum(steps, below.size // total.size)
        sums = shares * (np.where(exact, 0.0, alike(powers, distinct_axes(Axes))) + beside)
        error_scale = ErrorScale(sums, held, sums_shared=True)
        if InputTensor.dtype != np.float16:
            return error_scale
        # A relative error e of a power with the share p changes the sum by e * p.
        errors = 1 + 0.5 * (shares * _exponent_steps(below)).sum(distinct_axes(Axes), keepdims=True)
        least = total * (1 - FLOAT16_EPSILON * in_parts)
        held_sum = Span.sums(least, total * errors, shares.size // total.size, exact).held()
        return error_scale.spanned(Span.of(powers) / held_sum)


def _steps(shares: Array, below: Array, axes: Sequence[int]) -> Array:
    """Return the errors of the powers and the quotient in FLOAT32, in half ULPs."""
    steps: Array = change_of_shares(shares, _exponent_steps(below), distinct_axes(axes)) + 4
    return steps


def _exponent_steps(below: Array) -> Array:
    """Return the error of a power in half ULPs, if FLOAT32 truncates its argument twice."""
    steps: Array = EXP2_HALVES + 4 * np.where(np.isfinite(below), np.abs(below), 0)
    return steps


def change_of_shares(shares: Array, errors: Array, axes: tuple[int, ...]) -> Array:
    """Return the greatest relative change of each share that the errors of exponents cause.

    With the shares p and the errors e, the change of share i is at most (1 - p_i) e_i, plus the sum
    of p_j e_j over all other shares j.

    Derived in docs/bounds.md, Softmax.
    """
    own = shares * errors
    others = np.maximum(own.sum(axes, keepdims=True) - own, 0)
    change: Array = errors * (1 - shares) + others
    return change


def fused_softmax_error_scale(
    values: Array, error_scale: ErrorScale, axes: Sequence[int]
) -> ErrorScale:
    """Return the error scale of a softmax that an operator applies to its own sums `values`.

    Kernels may store the sums and the powers in FLOAT16.

    Derived in docs/bounds.md, Softmax.
    """
    with np.errstate(all="ignore"):
        shares, below = row_shares(values, axes)

        def carried(errors: Array) -> Array:
            everywhere = (shares * errors).sum(distinct_axes(axes), keepdims=True)
            changed: Array = shares * (errors + everywhere)
            return changed

        # Powers of numbers far below 0 are subnormal or 0 in FLOAT16.
        powers = np.exp(below)
        least = np.where(powers > 0, LEAST_NORMAL_FLOAT16, 0.0) / powers.sum(
            distinct_axes(axes), keepdims=True
        )
        exact = error_scale.exact
        held = store_sizes(values, exact)
        if error_scale.stored is not None:
            held = held + error_scale.stored
        sums = np.where(exact, 0.0, error_scale.sums)
        rounded = shares * (1 + 0.5 * _steps(shares, below, axes))
        changed = shares * change_of_shares(shares, sums, distinct_axes(axes))
        return ErrorScale(changed + rounded, carried(held) + shares + least)


def activation_log_softmax1_candidates(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]
) -> Sequence[Interval]:
    """Return the candidates, from the rounding errors of each step and those of exp2 and log2.

    A kernel may store the sum of the powers of FLOAT16 elements in FLOAT16, and before that its
    parts (`_PARTS`).

    The sum is at least 1, so no result is above d, an element minus the greatest number of its row.
    If the sum is NaN, log2 of the sum is a number on some devices. What is right then depends on d.
    If d is finite, any result is right; if d is -infinity, -infinity and NaN; if d is NaN, only
    NaN.

    Source: Direct3D 11.3 functional specification, 3.1 (rounding) and 22.10 (exp and log).
    Measured: a simulation that truncates only the sum and the result to FLOAT16 gives the bits of
    DirectML 1.15.4 in 77 of 86 FLOAT16 cases.
    """
    over = distinct_axes(Axes)
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        below, powers = row_powers(InputTensor, Axes)
        total = powers.sum(over, keepdims=True)
        logarithm = np.log(total)
        distance = np.where(np.isfinite(below), np.abs(below), 0.0)
        of_exponent = np.minimum(distance, _NOTHING) * 2 * STEP
        of_powers = powers * (np.expm1(of_exponent) + EXP2_ERROR + STEP)
        of_sum = of_powers.sum(over, keepdims=True) / total
        of_sum += roundings(powers.size // total.size) * alike(powers, over) * STEP
        if dtype == np.float16:
            in_parts = 1.0 if powers.size // total.size > _PARTS else 0.0
            of_sum += FLOAT16_EPSILON * (in_parts + store_sizes(total) / total)
        of_logarithm = np.maximum(logarithm, 1.0) * LOG2_ERROR + logarithm * STEP
        error = distance * STEP + of_sum + of_logarithm
        values = below - logarithm
        without_value = np.isnan(values)
        low, high = rounded_interval(values, error, dtype)
        # The sum has the power of the greatest element, 1, so its logarithm is not below 0.
        of_zero = 2 * distance * STEP + EXP2_ERROR + LOG2_ERROR + STEP
        ends = low, np.fmin(high, rounded_interval(below, of_zero, dtype)[1])
        if not without_value.any():
            return [ends]
        greatest = np.fmax.reduce(InputTensor, over, keepdims=True).astype(np.float64)
        difference = InputTensor - greatest
        special = np.where(np.isfinite(difference), 0.0, difference).astype(dtype)
        of_any_logarithm = anything_where(special == 0, (special, special))
        nan = dtype.type(np.nan)
        low, high = (
            np.where(without_value, *each) for each in zip(of_any_logarithm, ends, strict=True)
        )
        return [
            (np.where(without_value, nan, ends[0]), np.where(without_value, nan, ends[1])),
            (low, high),
        ]


def activation_hardmax1_candidates(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]
) -> Sequence[Interval]:
    """Return the candidates of HARDMAX: the reference's zeros and ones, which are not rounded.

    If a row is compared in parts (`compared_in_parts`) and contains a NaN, each of its elements may
    be 0 or 1.

    Measured on DirectML 1.13.1 and 1.15.4: if a row of 1,024 elements ends with NaN, its last
    output is 1. On 1.8.0 to 1.15.4, a NaN at the end of a row of 1,000 or 1,023 elements may hide
    the largest one. One output of each such row is 1, which candidates of elements cannot say.
    """
    chosen = activation_hardmax1(InputTensor, OutputTensor, Axes)
    over = distinct_axes(Axes)
    if not compared_in_parts(InputTensor.shape, over):
        return [(chosen, chosen)]
    nan = np.isnan(InputTensor).any(over, keepdims=True)
    other = np.where(nan, 1 - chosen, chosen)
    return [(chosen, chosen), (other, other)]
