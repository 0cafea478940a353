"""Convert WebNN's tests of normalisations into cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.stated_cases import by_channel
from tests.backends.webnn.wpt_cases.building import Conversion, case_of, channels_first
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["CONVERSIONS"]

_EPSILON: Final = 1e-5
"""The default of WebNN's normalizations."""


def _batch_normalization(test: WptTest) -> Case:
    tensor = test.input("input")
    axis = test.axis(default=1)

    def of_axis(values: Array | None, default: float) -> Array:
        if values is None:
            values = np.full(tensor.shape[axis], default, tensor.dtype)
        return values.reshape([-1 if n == axis else 1 for n in range(tensor.ndim)])

    return case_of(
        test,
        "BATCH_NORMALIZATION",
        {
            "InputTensor": tensor,
            "MeanTensor": of_axis(test.input("mean"), 0),
            "VarianceTensor": of_axis(test.input("variance"), 1),
            "ScaleTensor": of_axis(test.optional("scale"), 1),
            "BiasTensor": of_axis(test.optional("bias"), 0),
        },
        Spatial=True,
        Epsilon=test.number("epsilon", _EPSILON),
    )


def _instance_normalization(test: WptTest) -> Case:
    layout = test.arguments.get("layout", "nchw")
    scale, bias = test.optional("scale"), test.optional("bias")
    return _normalized(
        test,
        {
            "InputTensor": channels_first(test.input("input"), layout),
            "ScaleTensor": None if scale is None else by_channel(scale, 4),
            "BiasTensor": None if bias is None else by_channel(bias, 4),
        },
        channels_first(test.output(), layout),
        (2, 3),
    )


def _layer_normalization(test: WptTest) -> Case:
    tensor = test.input("input")
    rank = max(tensor.ndim, 1)
    axes = test.sizes("axes", range(1, tensor.ndim))

    def of_axes(values: Array | None) -> Array | None:
        """Return a scale or bias with all dimensions: for axes [2, 1], 4x3 becomes 1x3x4."""
        if values is None:
            return None
        sizes = [tensor.shape[n] if n in axes else 1 for n in range(rank)]
        return values.transpose(np.argsort(axes)).reshape(sizes)

    scale, bias = of_axes(test.optional("scale")), of_axes(test.optional("bias"))
    inputs = {"InputTensor": tensor, "ScaleTensor": scale, "BiasTensor": bias}
    return _normalized(test, inputs, test.output(), tuple(sorted(axes)))


def _normalized(
    test: WptTest, inputs: Mapping[str, Array | None], output: Array, axes: tuple[int, ...]
) -> Case:
    tensor = inputs["InputTensor"]
    assert tensor is not None
    # DirectML takes scale and bias, or neither. A missing scale is 1, and a missing bias is 0.
    given = [each for name, each in inputs.items() if name != "InputTensor" and each is not None]
    others = {
        name: np.full(given[0].shape, value, tensor.dtype) if each is None else each
        for name, value in (("ScaleTensor", 1), ("BiasTensor", 0))
        if given
        for each in (inputs[name],)
    }
    return case_of(
        test,
        "MEAN_VARIANCE_NORMALIZATION2",
        {"InputTensor": tensor, **others},
        {"OutputTensor": output},
        AxisCount=len(axes),
        Axes=axes,
        UseMean=True,
        UseVariance=True,
        Epsilon=test.number("epsilon", _EPSILON),
    )


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "batchNormalization": _batch_normalization,
    "instanceNormalization": _instance_normalization,
    "layerNormalization": _layer_normalization,
}
