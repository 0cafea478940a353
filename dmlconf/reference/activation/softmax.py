"""Softmax, log-softmax and hardmax along some axes.

A row consists of the elements whose indices differ only along these axes. The share of an element x
is `exp(x) / sum(exp(x))`, where the sum is over its row. Shares are computed from `x - max(row)`,
so that no exponential overflows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.tensors.datatypes import Array

__all__ = [
    "activation_hardmax1",
    "activation_log_softmax1",
    "activation_softmax1",
    "distinct_axes",
    "fused_softmax",
    "row_powers",
    "row_shares",
]


def activation_softmax1(InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return the share of each element in its row along the axes. Rows with NaN or positive infinity,
    and rows of negative infinities alone, give NaN.

    Source: the page of DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC.
    """
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        return in_slices(
            lambda tensor: row_shares(tensor, Axes)[0], InputTensor, dtype=dtype, together=Axes
        )


def fused_softmax(values: Array, axes: Sequence[int]) -> Array:
    """Return the shares of FLOAT64 values, for attention and a SOFTMAX that is fused into GEMM."""
    return in_slices(
        lambda tensor: row_shares(tensor, axes)[0], values, dtype=values.dtype, together=axes
    )


def activation_log_softmax1(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return `x - max - ln(sum(exp(x - max)))`, the logarithm of each element's share in its row along
    the axes. The logarithm is NaN where SOFTMAX1 gives NaN.

    Source: the page of DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC; the subtraction of max was
    measured.
    """

    def logarithms(tensor: Array) -> Array:
        values, powers = row_powers(tensor, Axes)
        values -= np.log(powers.sum(distinct_axes(Axes), keepdims=True))
        return values

    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        return in_slices(logarithms, InputTensor, dtype=dtype, together=Axes)


def activation_hardmax1(InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return 1 for the largest element of each row along the axes, else 0. Of equal elements the first
    in row-major order counts.

    NaN counts as the largest element if it is the row's first, and as negative infinity elsewhere.

    Source: the page of DML_ACTIVATION_HARDMAX1_OPERATOR_DESC; NaN was measured.
    """
    reduced = [axis % InputTensor.ndim for axis in distinct_axes(Axes)]
    order = [axis for axis in range(InputTensor.ndim) if axis not in reduced] + reduced
    apart = InputTensor.transpose(order)
    rows = apart.reshape(*apart.shape[: InputTensor.ndim - len(reduced)], -1)
    ranks = np.where(np.isnan(rows), rows.dtype.type(-np.inf), rows)
    ranks[..., 0] = np.where(np.isnan(rows[..., 0]), np.inf, rows[..., 0])
    chosen = np.zeros(rows.shape, OutputTensor.DataType.dtype)
    np.put_along_axis(chosen, np.argmax(ranks, -1)[..., np.newaxis], 1, -1)
    return chosen.reshape(apart.shape).transpose(np.argsort(order))


def distinct_axes(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes, each once, in ascending order."""
    return tuple(sorted(set(axes)))


def row_powers(tensor: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Return `x - max(row)` and `exp(x - max(row))` of each element x, FLOAT64."""
    below = tensor.astype(np.float64)
    below -= below.max(distinct_axes(axes), keepdims=True)
    return below, np.exp(below)


def row_shares(tensor: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Return the share of each element x, and `x - max(row)`, FLOAT64."""
    below, powers = row_powers(tensor, axes)
    powers *= 1 / powers.sum(distinct_axes(axes), keepdims=True)
    return powers, below
