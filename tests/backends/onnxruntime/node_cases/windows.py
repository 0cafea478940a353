"""Convert ONNX's node tests of operators on windows or regions of an image into cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from tests.backends.onnxruntime.node_cases.building import Conversion, case_of
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest
from tests.backends.stated_cases import NoCaseError, by_channel

__all__ = ["CONVERSIONS"]


def _windows(test: NodeTest, kernel: Sequence[int]) -> dict[str, Any]:
    """Return the desc's strides, dilations and padding; `auto_pad` may decide the padding."""
    if test.attributes.get("ceil_mode"):
        raise NoCaseError("a window that begins within the padding at the end")
    rank = len(kernel)
    fields = _steps_and_padding(test, rank)
    auto = test.attributes.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        totals = [
            max((ceil(size / stride) - 1) * stride + (width - 1) * dilation + 1 - size, 0)
            for size, width, stride, dilation in zip(
                test.input(0).shape[2:], kernel, fields["Strides"], fields["Dilations"], strict=True
            )
        ]
        less = tuple(total // 2 for total in totals)
        more = tuple(total - total // 2 for total in totals)
        at_start, at_end = (less, more) if auto == "SAME_UPPER" else (more, less)
        fields |= {"StartPadding": at_start, "EndPadding": at_end}
    return fields


def _steps_and_padding(test: NodeTest, rank: int) -> dict[str, Any]:
    pads = tuple(test.attributes.get("pads") or (0,) * 2 * rank)
    return {
        "DimensionCount": rank,
        "Strides": tuple(test.attributes.get("strides") or (1,) * rank),
        "Dilations": tuple(test.attributes.get("dilations") or (1,) * rank),
        "StartPadding": pads[:rank],
        "EndPadding": pads[rank:],
    }


def _pool(test: NodeTest) -> Case:
    kernel = tuple(test.attributes.get("kernel_shape", test.input(0).shape[2:]))
    fields = {**_windows(test, kernel), "WindowSize": kernel}
    if test.operation.endswith("MaxPool"):
        if test.attributes.get("storage_order"):
            raise NoCaseError("indices by columns")
        names = ("OutputTensor", "OutputIndicesTensor")
        outputs = dict(zip(names, test.outputs, strict=False))
        return case_of(test, "MAX_POOLING2", outputs=outputs, **fields)
    if test.operation == "LpPool":
        return case_of(test, "LP_POOLING1", **fields, P=test.attributes["p"])
    padded = bool(test.attributes.get("count_include_pad", 0))
    return case_of(test, "AVERAGE_POOLING1", **fields, IncludePadding=padded)


def _convolution(test: NodeTest) -> Case:
    tensor, kernel, bias = test.input(0), test.input(1), test.optional(2)
    attributes = test.attributes
    backward = test.operation == "ConvTranspose"
    if backward and (attributes.get("output_shape") or attributes["auto_pad"] != "NOTSET"):
        raise NoCaseError("sizes of the output in place of padding")
    rank = tensor.ndim
    return case_of(
        test,
        "CONVOLUTION",
        {
            "InputTensor": tensor,
            "FilterTensor": kernel,
            "BiasTensor": None if bias is None else by_channel(bias, rank),
        },
        **_windows(test, kernel.shape[2:]),
        Mode="CROSS_CORRELATION",
        Direction="BACKWARD" if backward else "FORWARD",
        OutputPadding=tuple(attributes.get("output_padding") or (0,) * (rank - 2)),
        GroupCount=attributes["group"],
    )


def _convolution_integer(test: NodeTest) -> Case:
    tensor, kernel = test.input(0), test.input(1)
    points = test.optional(2), test.optional(3)
    zero = [None if each is None else by_channel(each, tensor.ndim) for each in points]
    return case_of(
        test,
        "CONVOLUTION_INTEGER",
        {
            "InputTensor": tensor,
            "InputZeroPointTensor": zero[0],
            "FilterTensor": kernel,
            "FilterZeroPointTensor": zero[1],
        },
        **_windows(test, kernel.shape[2:]),
        GroupCount=test.attributes["group"],
    )


def _fold(test: NodeTest) -> Case:
    block = tuple(test.input(2).tolist())
    return case_of(test, "FOLD", **_steps_and_padding(test, len(block)), WindowSizes=block)


def _unpool(test: NodeTest) -> Case:
    if test.optional(2) is not None:
        raise NoCaseError("an output of other sizes than what was pooled")
    inputs = {"InputTensor": test.input(0), "IndicesTensor": test.input(1).astype(np.uint64)}
    return case_of(test, "MAX_UNPOOLING", inputs)


def _roi_align(test: NodeTest) -> Case:
    attributes = test.attributes
    half = attributes["coordinate_transformation_mode"] == "half_pixel"
    return case_of(
        test,
        "ROI_ALIGN1",
        {
            "InputTensor": test.input(0),
            "ROITensor": test.input(1),
            "BatchIndicesTensor": test.input(2).astype(np.uint32),
        },
        ReductionFunction="AVERAGE" if attributes["mode"] == "avg" else "MAX",
        InterpolationMode="LINEAR",
        SpatialScaleX=attributes["spatial_scale"],
        SpatialScaleY=attributes["spatial_scale"],
        InputPixelOffset=0.5 if half else 0.0,
        OutputPixelOffset=-0.5,
        OutOfBoundsInputValue=0.0,
        MinimumSamplesPerOutput=attributes["sampling_ratio"],
        MaximumSamplesPerOutput=attributes["sampling_ratio"],
        AlignRegionsToCorners=False,
    )


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "AveragePool": _pool,
    "Col2Im": _fold,
    "Conv": _convolution,
    "ConvInteger": _convolution_integer,
    "ConvTranspose": _convolution,
    "GlobalAveragePool": _pool,
    "GlobalMaxPool": _pool,
    "LpPool": _pool,
    "MaxPool": _pool,
    "MaxUnpool": _unpool,
    "RoiAlign": _roi_align,
}
