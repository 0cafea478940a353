"""The optional ScaleBias of operators: `x * Scale + Bias` replaces each element x.

The result, the scaled element, is rounded to FLOAT32 for all tensor types. Scale 1 with Bias 0
changes no number. Without ScaleBias, the scaled element is x.

Source: the page of DML_SCALE_BIAS; the scaling of integers was measured. On a software adapter,
DirectML 1.15.4 rounds the product and then the sum. Here only the sum is rounded, unless Bias is
infinite or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.element_wise.conversion import cast
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "ScaleBias",
    "is_identity",
    "product_and_sum",
    "scaled",
    "scaled_function",
    "unary",
    "whole_part",
]

ScaleBias = Mapping[str, float]
"""The fields Scale and Bias by name."""


def is_identity(scale_bias: ScaleBias | None) -> bool:
    """Return whether there is no ScaleBias, or its scale is 1 and its bias 0."""
    return scale_bias is None or (scale_bias["Scale"] == 1 and scale_bias["Bias"] == 0)


def scaled(tensor: Array, scale_bias: ScaleBias | None) -> Array:
    """Return the scaled elements as FLOAT64."""
    if scale_bias is None or is_identity(scale_bias):
        return wide(tensor)
    with np.errstate(all="ignore"):
        product, total = product_and_sum(tensor, scale_bias)
        # The product overflows in FLOAT32 before an infinite Bias is added.
        if not math.isfinite(scale_bias["Bias"]):
            total = product.astype(np.float32).astype(np.float64) + scale_bias["Bias"]
        rounded: Array = total.astype(np.float32).astype(np.float64)
        return rounded


def product_and_sum(tensor: Array, scale_bias: ScaleBias) -> tuple[Array, Array]:
    """Return `x * Scale` and `x * Scale + Bias` as FLOAT64."""
    product = wide(tensor) * single(scale_bias["Scale"])
    return product, product + single(scale_bias["Bias"])


def scaled_function(
    function: Callable[[Array], Array],
    tensor: Array,
    scale_bias: ScaleBias | None,
    output: TensorDesc,
    *,
    rounds_once: bool = False,
) -> Array:
    """Return what a function gives for the scaled elements, cast to the output's type.

    The function takes the scaled elements of an integer tensor without their fraction, and 0 for
    NaN.

    Args:
        function: a function of FLOAT64 numbers and, if it rounds once, also of numbers of the
            tensor's own type.
        rounds_once: whether the function rounds the exact result once, to the type of its argument.
            If so, unscaled floating-point elements of the output's type are not widened.
    """
    dtype = output.DataType.dtype
    same_type = tensor.dtype.kind == "f" and tensor.dtype == dtype
    if rounds_once and same_type and is_identity(scale_bias):
        with np.errstate(all="ignore"):
            return function(tensor)

    def computed(elements: Array) -> Array:
        values = scaled(elements, scale_bias)
        result = function(whole_part(values) if tensor.dtype.kind in "iu" else values)
        return result if dtype == np.float32 else cast(result, output)

    with np.errstate(all="ignore"):
        return in_blocks(computed, tensor, dtype=dtype)


def unary(
    name: str,
    function: Callable[[Array], Array],
    words: str,
    *,
    measured: str = "",
    rounds_once: bool = False,
) -> Callable[..., Array]:
    """Return the reference function of an operator with one floating-point input and a ScaleBias.

    Args:
        name: the operator's in lower case.
        function: a function of FLOAT64 numbers; if it rounds once, also of the tensor's own type.
        words: what the function returns of an element x, for the docstring.
        measured: what was measured, since the operator's page lacks it, for the docstring.
        rounds_once: as for `scaled_function`.
    """

    def reference(
        InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
    ) -> Array:
        return scaled_function(
            function, InputTensor, ScaleBias, OutputTensor, rounds_once=rounds_once
        )

    reference.__name__ = name
    reference.__doc__ = f"""InputTensor {{D0, ...}} -> OutputTensor {{D0, ...}}; FLOAT32, FLOAT16

    For each scaled element x, return {words}.

    Source: the page of DML_{name.upper()}_OPERATOR_DESC{f"; {measured}" if measured else ""}.
    """
    return reference


def whole_part(values: Array) -> Array:
    """Return numbers without their fraction, and 0 for NaN."""
    whole: Array = np.trunc(values)
    whole[np.isnan(whole)] = 0
    return whole
