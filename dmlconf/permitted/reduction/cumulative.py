"""Permitted errors of cumulative sums and products.

Derived in docs/bounds.md, Sums and Products.
"""

from __future__ import annotations

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
    if not np.isfinite(sums).all():
        # Finite terms beside an infinity may overflow to the opposite one.
        before = cumulated(np.add, finite_sizes(InputTensor), Axis, AxisDirection, HasExclusiveSum)
        scale = scale.overflowing_where(overflows(before))
    if not overflows(sums).any():
        return scale
    return scale.signed(cumulated(np.add, terms, Axis, AxisDirection, HasExclusiveSum))


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
        return product_error_scale(wide(InputTensor), multiply)
