"""GEMM, the product of floating-point matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.activation.softmax import fused_softmax
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "GemmDesc",
    "fused_softmax_axes",
    "gemm",
    "gemm_sums",
]


@dataclass(frozen=True, slots=True)
class GemmDesc:
    """The fields of DML_GEMM_OPERATOR_DESC."""

    ATensor: Array
    BTensor: Array
    CTensor: Array | None
    OutputTensor: TensorDesc
    TransA: str
    TransB: str
    Alpha: float
    Beta: float
    FusedActivation: Mapping[str, Any] | None


@of_fields(GemmDesc)
def gemm(desc: GemmDesc) -> Array:
    """ATensor {B, ..., M, K}, BTensor {B, ..., K, N}, [CTensor {B, ..., M, N}] ->
    OutputTensor {B, ..., M, N}; FLOAT32, FLOAT16

    Return the activation of `Alpha * A x B + Beta * C`, for each matrix of a batch.

    The sizes above are for TransA and TransB NONE; TRANSPOSE exchanges the last two. An Alpha or
    Beta of 0 is a factor too: 0 times infinity is NaN.

    Source: the page of DML_GEMM_OPERATOR_DESC; zero factors were measured.
    """
    alpha, beta = single(desc.Alpha), single(desc.Beta)
    c = None if desc.CTensor is None else wide(desc.CTensor)
    with np.errstate(all="ignore"):
        sums = gemm_sums(desc, c, alpha, beta)
        axes = fused_softmax_axes(desc.FusedActivation)
        output = fused(sums, desc.FusedActivation) if axes is None else fused_softmax(sums, axes)
        return output.astype(desc.OutputTensor.DataType.dtype)


def fused_softmax_axes(activation: Mapping[str, Any] | None) -> Sequence[int] | None:
    """Return the axes of a fused SOFTMAX or SOFTMAX1; None for other activations and for none."""
    if activation is None or not activation["operator"].startswith("ACTIVATION_SOFTMAX"):
        return None
    axes: Sequence[int] = activation.get("Axes", (-1,))
    return axes


def gemm_sums(
    desc: GemmDesc,
    c: Array | None,
    alpha: float,
    beta: float,
    convert: Callable[[Array], Array] = wide,
) -> Array:
    """Return `alpha * convert(A) x convert(B) + beta * c`, FLOAT64.

    A and B are transposed as the desc says.

    Args:
        c: a matrix for each batch, or None for 0.
        convert: returns a tensor of its argument's sizes, FLOAT64.
    """
    left, right = (
        np.swapaxes(tensor, -1, -2) if trans == "TRANSPOSE" else tensor
        for tensor, trans in ((desc.ATensor, desc.TransA), (desc.BTensor, desc.TransB))
    )
    product = alpha * _product(convert(left), right, convert)
    return product if c is None else product + beta * c


_BLOCK: Final = 1 << 17
"""About how many elements of the right matrix become FLOAT64 at once, to stay in the cache."""

_FEW_ROWS: Final = 16
"""A product of at most this many rows takes less time than a FLOAT64 copy of the right matrix."""


def _product(left: Array, right: Array, convert: Callable[[Array], Array]) -> Array:
    rows, columns = left.shape[-2], right.shape[-1]
    step = max(1, _BLOCK // max(1, right.shape[-2]))
    if rows > _FEW_ROWS or columns <= step:
        whole: Array = np.matmul(left, convert(right))
        return whole
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    product = np.empty((*batch, rows, columns))
    for start in range(0, columns, step):
        block = (..., slice(start, start + step))
        np.matmul(left, convert(right[block]), out=product[block])
    return product
