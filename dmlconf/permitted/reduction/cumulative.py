"""Permitted errors of cumulative sums and products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of
from dmlconf.permitted.numbers.rounding import finite_sizes, overflows
from dmlconf.permitted.numbers.terms import values_repeat
from dmlconf.permitted.reduction.reduce import product_error_scale
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.reduction.cumulative import cumulated
from dmlconf.tensors.datatypes import Array

__all__ = [
    "cumulative_product_error_scale",
    "cumulative_summation_error_scale",
]


def cumulative_summation_error_scale(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    Axis: int,
    AxisDirection: str,
    HasExclusiveSum: bool,
) -> ErrorScale:
    """Return the error scale: the cumulative sums of absolute values.

    Derived in docs/bounds.md, Sums.
    """
    terms = wide(InputTensor)
    sums = cumulated(np.add, np.abs(terms), Axis, AxisDirection, HasExclusiveSum)
    scale = ErrorScale(
        sums,
        quantum=quantum_of(InputTensor),
        sums_shared=True,
        terms_repeat=values_repeat(InputTensor, Axis),
    )

    def summed(values: Array) -> Array:
        return cumulated(np.add, values, Axis, AxisDirection, HasExclusiveSum)

    # If a term is infinite, finite ones may overflow to the opposite infinity.
    finite = summed(finite_sizes(InputTensor))
    if not overflows(finite, InputTensor.dtype).any():
        return scale
    beyond = overflows(finite) & ~np.isnan(sums)
    by_sign = summed(np.minimum(terms, 0)), summed(np.maximum(terms, 0))
    return replace(scale.overflowing_where(beyond), by_sign=by_sign)


def cumulative_product_error_scale(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    Axis: int,
    AxisDirection: str,
    HasExclusiveProduct: bool,
) -> ErrorScale:
    """Return the error scale: the sizes of the products, larger where a partial product underflows.

    Derived in docs/bounds.md, Products.
    """

    def multiply(factors: Array) -> Array:
        return cumulated(np.multiply, factors, Axis, AxisDirection, HasExclusiveProduct)

    with np.errstate(all="ignore"):
        return product_error_scale(wide(InputTensor), multiply, InputTensor.dtype)
