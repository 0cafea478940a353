"""Convert WebNN's tests of operators on images: convolution, pooling and resampling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.stated_cases import by_channel
from tests.backends.webnn.wpt_cases.building import Conversion, case_of, channels_first
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["CONVERSIONS"]

_DIMENSIONS: Final = 2
"""WebNN's windows have a height and a width."""


def _steps_and_padding(test: WptTest) -> dict[str, Any]:
    top, bottom, left, right = test.sizes("padding", (0, 0, 0, 0))
    return {
        "DimensionCount": _DIMENSIONS,
        "Strides": test.sizes("strides", (1, 1)),
        "Dilations": test.sizes("dilations", (1, 1)),
        "StartPadding": (top, left),
        "EndPadding": (bottom, right),
    }


def _convolution(test: WptTest) -> Case:
    backward = test.operation == "convTranspose2d"
    layout = test.arguments.get("inputLayout", "nchw")
    order = test.arguments.get("filterLayout", "iohw" if backward else "oihw")
    wanted = "iohw" if backward else "oihw"
    tensor = channels_first(test.input("input"), layout)
    kernel = test.input("filter").transpose([order.index(each) for each in wanted])
    output = channels_first(test.output(), layout)
    bias = test.optional("bias")
    fields = _steps_and_padding(test)
    output_padding = test.sizes("outputPadding", (0, 0))
    if backward and "outputSizes" in test.arguments:
        output_padding = _output_padding(tensor, kernel, output, fields)
    return case_of(
        test,
        "CONVOLUTION",
        {
            "InputTensor": tensor,
            "FilterTensor": kernel,
            "BiasTensor": None if bias is None else by_channel(bias, 4),
        },
        {"OutputTensor": output},
        **fields,
        Mode="CROSS_CORRELATION",
        Direction="BACKWARD" if backward else "FORWARD",
        OutputPadding=output_padding,
        GroupCount=int(test.number("groups", 1)),
    )


def _output_padding(
    tensor: Array, kernel: Array, output: Array, fields: Mapping[str, Any]
) -> tuple[int, ...]:
    """Return OutputPadding: the output's sizes minus those that the windows give."""
    return tuple(
        output.shape[n + 2]
        + (fields["StartPadding"][n] + fields["EndPadding"][n])
        - fields["Strides"][n] * (tensor.shape[n + 2] - 1)
        - fields["Dilations"][n] * (kernel.shape[n + 2] - 1)
        - 1
        for n in range(_DIMENSIONS)
    )


def _pool(test: WptTest) -> Case:
    layout = test.arguments.get("layout", "nchw")
    tensor = channels_first(test.input("input"), layout)
    output = channels_first(test.output(), layout)
    window = test.sizes("windowDimensions", tensor.shape[2:])
    fields = _steps_and_padding(test)
    # DirectML rounds sizes down. Padding at the end gives the output the sizes of the test.
    fields["EndPadding"] = tuple(
        max(
            fields["EndPadding"][n],
            fields["Strides"][n] * (output.shape[n + 2] - 1)
            + fields["Dilations"][n] * (window[n] - 1)
            + 1
            - tensor.shape[n + 2]
            - fields["StartPadding"][n],
        )
        for n in range(_DIMENSIONS)
    )
    inputs, outputs = {"InputTensor": tensor}, {"OutputTensor": output}
    if test.operation == "maxPool2d":
        return case_of(test, "MAX_POOLING2", inputs, outputs, **fields, WindowSize=window)
    if test.operation == "l2Pool2d":
        return case_of(test, "LP_POOLING1", inputs, outputs, **fields, WindowSize=window, P=2)
    return case_of(
        test,
        "AVERAGE_POOLING1",
        inputs,
        outputs,
        **fields,
        WindowSize=window,
        IncludePadding=False,
    )


def _resample(test: WptTest) -> Case:
    tensor, output = test.input("input"), test.output()
    axes = test.sizes("axes", (2, 3))
    scales = [1.0] * tensor.ndim
    for axis in axes:
        scales[axis] = output.shape[axis] / tensor.shape[axis]
    return case_of(
        test,
        "RESAMPLE1",
        InterpolationMode=(
            "LINEAR" if test.arguments.get("mode") == "linear" else "NEAREST_NEIGHBOR"
        ),
        DimensionCount=tensor.ndim,
        Scales=tuple(scales),
        InputPixelOffsets=(0.5,) * tensor.ndim,
        OutputPixelOffsets=(-0.5,) * tensor.ndim,
    )


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "averagePool2d": _pool,
    "conv2d": _convolution,
    "convTranspose2d": _convolution,
    "l2Pool2d": _pool,
    "maxPool2d": _pool,
    "resample2d": _resample,
}
