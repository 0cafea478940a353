"""Permitted results of REDUCE, ARGMIN and ARGMAX besides the reference's outputs.

Derived in docs/bounds.md, Sums, Averages, Products and Functions of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.accuracy import EXP2_HALVES, LOG2_ERROR
from dmlconf.permitted.numbers.comparison_in_parts import compared_in_parts
from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of
from dmlconf.permitted.numbers.passes import in_passes
from dmlconf.permitted.numbers.rounding import ANY_RESULT, STEP, finite_sum, overflows
from dmlconf.permitted.numbers.span import Span
from dmlconf.permitted.numbers.terms import terms_vary
from dmlconf.precision.allowance import Interval
from dmlconf.reference.reduction.reduce import argmax, argmin, reduce, reduced_last, sum_of_squares
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32, LEAST_NORMAL_FLOAT32

__all__ = [
    "argmax_interval",
    "argmin_interval",
    "product_error_scale",
    "reduce_candidates",
    "reduce_error_scale",
    "reduce_interval",
]

_LOG2_STEPS: Final = LOG2_ERROR / STEP
"""The error of log2, as a multiple of STEP: 4."""


def argmin_interval(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int], AxisDirection: str
) -> Interval:
    """Return the interval of ARGMIN: the index, or any if a row compared in parts has a NaN.

    Source: measured on DirectML 1.8.0 to 1.15.4: rows of 514 elements and more, and several axes.
    """
    return _index_interval(
        InputTensor, argmin(InputTensor, OutputTensor, Axes, AxisDirection), Axes
    )


def argmax_interval(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int], AxisDirection: str
) -> Interval:
    """Return the interval of ARGMAX, as `argmin_interval` does for ARGMIN."""
    return _index_interval(
        InputTensor, argmax(InputTensor, OutputTensor, Axes, AxisDirection), Axes
    )


def _index_interval(tensor: Array, indices: Array, axes: Sequence[int]) -> Interval:
    if tensor.dtype.kind != "f" or not compared_in_parts(tensor.shape, axes):
        return indices, indices
    rows = reduced_last(tensor, axes)
    nan = np.isnan(rows).any(-1).reshape(indices.shape)
    last = indices.dtype.type(rows.shape[-1] - 1)
    return np.where(nan, indices.dtype.type(0), indices), np.where(nan, last, indices)


def reduce_interval(
    Function: str, InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]
) -> Interval:
    """Return the interval of REDUCE with ARGMIN or ARGMAX, as `argmin_interval` does."""
    indices = reduce(Function, InputTensor, OutputTensor, Axes)
    return _index_interval(InputTensor, indices, Axes)


def reduce_candidates(
    Function: str, InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]
) -> Sequence[Interval]:
    """Return the candidates of REDUCE with MIN or MAX: one, or two if a row has only NaN.

    For a row of NaN, a kernel may return NaN, or the number from which it starts: infinity for MIN,
    -infinity for MAX.

    Source: Direct3D 11.3 functional specification, min and max. Measured: DirectML gives NaN for
    4,096 elements, and the infinity for fewer and for more, up to 65,536.
    """
    extremum = reduce(Function, InputTensor, OutputTensor, Axes)
    only_nan = np.isnan(reduced_last(InputTensor, Axes)).all(-1).reshape(extremum.shape)
    nan = np.where(only_nan, extremum.dtype.type(np.nan), extremum)
    return [(extremum, extremum), (nan, nan)] if only_nan.any() else [(extremum, extremum)]


def _results_in_passes(
    tensor: Array,
    axes: Sequence[int],
    combined: Callable[..., Array],
    power: int = 1,
) -> tuple[Array, ...]:
    """Return the FLOAT16 sums or averages of kernels that compute them in several passes.

    There are none for FLOAT32, nor for adjacent axes. Each pass stores its results in FLOAT16.
    Measured on DirectML 1.8.0: sums of squares along the axes 0 and 3 of 4 take two passes.

    Args:
        combined: np.sum or np.mean.
        power: 2 for squares.
    """
    if tensor.dtype != np.float16:
        return ()
    rows = reduced_last(tensor, axes).shape[:-1]
    functions = in_passes(axes, lambda values, group: combined(values, axis=group, keepdims=True))
    return tuple(
        function(tensor.astype(np.float64) ** power).astype(tensor.dtype).reshape(rows)
        for function in functions
    )


def reduce_error_scale(
    Function: str, InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]
) -> ErrorScale:
    """Return the error scale of a reduction: the same reduction of absolute values.

    The error scale of a logarithm is larger: log turns the relative error of the sum into an
    absolute error. Intermediates may overflow although the result does not, and subnormal
    intermediates may be flushed to 0.

    Derived in docs/bounds.md, Functions of sums.

    Source: Direct3D 11.3 functional specification: log2 has an error of 2^-21 and exp2 a relative
    one of 2^-21, 8 half ULPs of FLOAT32.
    """
    rows = reduced_last(InputTensor, Axes)
    with np.errstate(all="ignore"):
        exact = rows.astype(np.float64)
        sizes = np.abs(exact)
        if Function == "MULTIPLY":
            return product_error_scale(exact, lambda factors: factors.prod(-1), InputTensor.dtype)
        if Function in ("LOG_SUM", "LOG_SUM_EXP"):
            return _logarithm_error_scale(exact, Function)
        if Function in ("SUM", "L1"):
            vary = terms_vary(rows, (-1,))
            others = _results_in_passes(InputTensor, Axes, np.sum) if Function == "SUM" else ()
            scale = ErrorScale(
                sizes.sum(-1), quantum=quantum_of(rows), others=others, terms_vary=vary
            )
            return _signed(scale, exact if Function == "SUM" else sizes, rows.dtype)
        if Function == "AVERAGE":
            beyond = overflows(finite_sum(sizes))
            vary = terms_vary(rows, (-1,))
            others = _results_in_passes(InputTensor, Axes, np.mean)
            scale = ErrorScale(sizes.mean(-1), overflows=beyond, others=others, terms_vary=vary)
            return _signed(scale, exact, rows.dtype)
        squares = sum_of_squares(sizes, sizes.dtype)
        underflow = (
            np.count_nonzero((sizes > 0) & (np.square(sizes) < LEAST_NORMAL_FLOAT32), -1)
            * LEAST_NORMAL_FLOAT32
        )
        if Function == "SUM_SQUARE":
            quantum = 0.0 if underflow.any() else quantum_of(rows, rows)
            vary = terms_vary(np.square(rows), (-1,))
            others = _results_in_passes(InputTensor, Axes, np.sum, 2)
            scale = ErrorScale(
                squares + underflow / STEP, quantum=quantum, others=others, terms_vary=vary
            )
            if not overflows(scale.sums, InputTensor.dtype).any():
                return scale
            return replace(scale, by_sign=(np.zeros_like(squares), squares))
        root = np.sqrt(squares)
        # How far the root is off if squares that are subnormal in FLOAT32 are lost.
        change = root - np.sqrt(np.maximum(squares - underflow, 0.0))
        beyond = overflows(finite_sum(np.square(sizes)))
        vary = terms_vary(np.square(rows), (-1,))
        positive = (np.zeros_like(squares), squares) if beyond.any() else None
        return ErrorScale(root + change / STEP, overflows=beyond, terms_vary=vary, by_sign=positive)


def _signed(scale: ErrorScale, terms: Array, dtype: np.dtype[Any]) -> ErrorScale:
    """Return the error scale with the signs of sums that may overflow FLOAT32, or the type `dtype`.

    If a term is infinite, finite ones may overflow to the opposite infinity.
    """
    sizes = finite_sum(np.abs(terms))
    if not overflows(sizes, dtype).any():
        return scale
    by_sign = np.minimum(terms, 0).sum(-1), np.maximum(terms, 0).sum(-1)
    beyond = overflows(sizes) & ~np.isnan(scale.sums)
    return replace(scale.overflowing_where(beyond), by_sign=by_sign)


def _logarithm_error_scale(exact: Array, function: str) -> ErrorScale:
    """Return the error scale of the logarithm of each row's sum, or of the sum of its exponentials.

    Derived in docs/bounds.md, Functions of sums.
    """
    sizes = np.abs(exact)
    terms, weights = exact, sizes
    quantum = quantum_of(exact) if function == "LOG_SUM" else 0.0
    # FLOAT32 adds up these rows exactly in any order.
    certain = (sizes.sum(-1) <= quantum * 2.0**24) & (quantum >= LEAST_NORMAL_FLOAT32)
    if function == "LOG_SUM_EXP":
        terms = np.exp(exact)
        # e^-infinity is exactly 0.
        weights = np.where(terms > 0, terms * (EXP2_HALVES + 2 * sizes), 0.0)
    total = terms.sum(-1)
    own = np.maximum(np.abs(np.log(total)), 1) * _LOG2_STEPS
    of_sum = np.where(certain, 0.0, weights.sum(-1) / np.abs(total))
    # A sum whose terms cancel may become negative, and a subnormal sum may be flushed to 0.
    unknown = (of_sum * exact.shape[-1] * STEP > 1) | (np.abs(total) < LEAST_NORMAL_FLOAT32)
    unknown &= ~certain
    # Measured on DirectML 1.8.0 to 1.12.1: the logarithm of a subnormal number is up to that of the
    # least normal one.
    subnormal = (total > 0) & (total < LEAST_NORMAL_FLOAT32)
    # A subnormal exponential has an error of up to 2^-149.
    least = np.maximum(total - 2.0**-149 * exact.shape[-1], 2.0**-149)
    least = np.minimum(total, least) if function == "LOG_SUM_EXP" else total
    ends = (np.where(subnormal, np.log(each), np.nan) for each in (least, LEAST_NORMAL_FLOAT32))
    beyond = overflows(finite_sum(np.abs(terms))) | (np.isfinite(exact).all(-1) & np.isinf(total))
    # The logarithm of a sum without negative terms may be -infinity, but not NaN.
    sides = None
    if (beyond | unknown).any():
        up = beyond | (terms < 0).any(-1) | np.isnan(total)
        sides = np.full(total.shape, -np.inf), np.where(up, np.inf, 0.0)
    sizes = np.abs(np.log(total)) + of_sum + own
    scale = ErrorScale(sizes, overflows=beyond | unknown, by_sign=sides)
    return scale.spanned(Span.around(*ends)) if subnormal.any() else scale


def product_error_scale(
    factors: Array, multiply: Callable[[Array], Array], dtype: np.dtype[Any]
) -> ErrorScale:
    """Return the error scale of products: their sizes, enlarged where a partial product underflows.

    `multiply` makes the products, of the type `dtype`. Sizes count as twice the largest number of a
    floating-point type at most: a product of 1e16 exceeds FLOAT16 whatever its errors are.

    A partial product of finite factors may overflow or underflow. So may be right as well:

    - an infinity with the sign of the product, if no factor is 0 or infinite;
    - NaN, as infinity times 0, if a factor is 0 and others overflow, if a factor is infinite and
      others underflow, or if some overflow and others underflow.

    Derived in docs/bounds.md, Products.
    """

    def product_has(what: Array) -> Array:
        present: Array = multiply(np.where(what, 0.0, 1.0)) == 0
        return present

    absolute = np.abs(factors)
    product = multiply(absolute)
    infinite, zero = product_has(np.isinf(absolute)), product_has(absolute == 0)
    finite = np.where(np.isfinite(absolute), absolute, 1.0)
    ordinary = ~(infinite | zero | product_has(np.isnan(absolute)))
    largest = LARGEST_FLOAT32
    most = 2 * float(np.finfo(dtype).max) if dtype.kind == "f" else np.inf
    # Whether an order of factors exists in which a partial product overflows, or underflows.
    greatest = multiply(np.maximum(finite, 1.0))
    up = greatest > largest
    down = multiply(np.where(finite > 0, np.minimum(finite, 1.0), 1.0)) < LEAST_NORMAL_FLOAT32
    # A subnormal intermediate may be flushed to zero or lose digits.
    sums = np.where(down, product / STEP, np.minimum(product, most))
    sums = np.where(ordinary, np.where(up & down, ANY_RESULT, sums), product)
    sides = None
    if (overflows(greatest, dtype) & ordinary).any() if dtype.kind == "f" else up.any():
        signs = multiply(np.sign(factors))
        # FLOAT16 arithmetic may overflow earlier. Beside 0 or infinity it makes no infinity.
        greatest = np.where(up, np.inf, np.where(ordinary, greatest, 0.0))
        sides = np.where(signs < 0, -greatest, 0.0), np.where(signs > 0, greatest, 0.0)
    scale = ErrorScale(sums, overflows=up & ordinary & (product <= largest), by_sign=sides)
    nan = (zero & ~infinite & up) | (infinite & ~zero & down)
    if not nan.any() or dtype.kind != "f":
        return scale
    return scale.with_others([np.where(nan, np.nan, multiply(factors))], dtype)
