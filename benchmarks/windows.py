"""Workloads of products, convolutions and pooling, as networks have them, for timing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from benchmarks.workloads import Workload, desc, random_tensor
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["windows"]

UINT8: Final = DataType.UINT8


def windows() -> Iterator[Workload]:
    """Yield every workload; its arrays are generated on demand."""
    for family in (_matrices, _convolutions, _quantized_convolutions, _poolings, _max_poolings):
        yield from family()


def _matrices() -> Iterator[Workload]:
    a, b = random_tensor(1024, 1024, low=-1), random_tensor(1024, 1024, seed=2, low=-1)
    fields: dict[str, Any] = {"ATensor": a, "BTensor": b, "OutputTensor": desc(1024, 1024)}
    gemm = {**fields, "TransA": "NONE", "TransB": "NONE", "Alpha": 1.0, "Beta": 0.0}
    family = "matrix multiplication"
    yield Workload(family, "GEMM of 1024", "GEMM", gemm, "Gemm", [a, b])
    a, b = _bytes(512, 512), _bytes(512, 512, seed=2)
    zero = np.array(100, np.uint8)
    zeros = {"AZeroPointTensor": zero.reshape(1, 1), "BZeroPointTensor": zero.reshape(1, 1)}
    fields = {"ATensor": a, "BTensor": b, **zeros}
    name = "MATRIX_MULTIPLY_INTEGER"
    integer = {**fields, "OutputTensor": desc(512, 512, of=DataType.INT32)}
    yield Workload(family, f"{name} of 512", name, integer, "MatMulInteger", [a, b, zero, zero])
    scale, last = np.array(0.0213, np.float32), np.array(4.07, np.float32)
    fields |= {
        "AScaleTensor": scale.reshape(1, 1),
        "BScaleTensor": scale.reshape(1, 1),
        "OutputScaleTensor": last.reshape(1, 1),
        "OutputZeroPointTensor": zero.reshape(1, 1),
        "OutputTensor": desc(512, 512, of=UINT8),
    }
    name = "QUANTIZED_LINEAR_MATRIX_MULTIPLY"
    feeds = [a, scale, zero, b, scale, zero, last, zero]
    yield Workload(family, f"{name} of 512", name, fields, "QLinearMatMul", feeds)


def _convolutions() -> Iterator[Workload]:
    yield _convolution("3x3, 64 channels, 56x56", (64, 56, 56), (64, 64, 3, 3), padding=1)
    yield _convolution("1x1, 256 to 64 channels, 56x56", (256, 56, 56), (64, 256, 1, 1))
    yield _convolution(
        "7x7 of stride 2, 3 channels, 224x224", (3, 224, 224), (64, 3, 7, 7), stride=2, padding=3
    )
    yield _convolution(
        "3x3 of dilation 2, 64 channels, 56x56", (64, 56, 56), (64, 64, 3, 3), dilation=2, padding=2
    )
    yield _convolution(
        "3x3 in 4 groups, 64 channels, 56x56", (64, 56, 56), (64, 16, 3, 3), padding=1, groups=4
    )
    yield _convolution(
        "3x3 depthwise, 64 channels, 56x56", (64, 56, 56), (64, 1, 3, 3), padding=1, groups=64
    )
    yield _convolution(
        "5x5 depthwise of stride 2, 64 channels, 56x56",
        (64, 56, 56),
        (64, 1, 5, 5),
        stride=2,
        padding=2,
        groups=64,
    )
    yield _convolution("of 9, 64 channels, 4096", (64, 4096), (64, 64, 9), padding=4)
    yield _convolution(
        "of 9 depthwise, 64 channels, 4096", (64, 4096), (64, 1, 9), padding=4, groups=64
    )
    yield _convolution(
        "3x3x3, 16 channels, 16x28x28", (16, 16, 28, 28), (16, 16, 3, 3, 3), padding=1
    )
    yield _convolution(
        "BACKWARD 4x4 of stride 2, 64 to 32 channels, 28x28",
        (64, 28, 28),
        (64, 32, 4, 4),
        stride=2,
        padding=1,
        direction="BACKWARD",
    )
    yield _convolution(
        "BACKWARD 2x2 of stride 2, 64 to 32 channels, 56x56",
        (64, 56, 56),
        (64, 32, 2, 2),
        stride=2,
        direction="BACKWARD",
    )


def _convolution(
    name: str,
    sizes: Sequence[int],
    filter_sizes: Sequence[int],
    *,
    stride: int = 1,
    dilation: int = 1,
    padding: int = 0,
    groups: int = 1,
    direction: str = "FORWARD",
) -> Workload:
    """Return a convolution of one batch, with the same attributes in all spatial dimensions."""
    values = random_tensor(1, *sizes, low=-1)
    filter_ = random_tensor(*filter_sizes, seed=2, low=-1)
    forward = direction == "FORWARD"
    outputs = filter_sizes[0] if forward else filter_sizes[1] * groups
    spatial = _outputs(sizes[1:], filter_sizes[2:], stride, dilation, padding, forward=forward)
    fields, attributes = _spatial(len(spatial), stride, dilation, padding, groups)
    fields |= {
        "InputTensor": values,
        "FilterTensor": filter_,
        "OutputTensor": desc(1, outputs, *spatial),
        "Mode": "CROSS_CORRELATION",
        "Direction": direction,
        "OutputPadding": [0] * len(spatial),
    }
    node = "Conv" if forward else "ConvTranspose"
    operator = "CONVOLUTION"
    return Workload(
        "convolution", f"{operator} {name}", operator, fields, node, [values, filter_], attributes
    )


def _quantized_convolutions() -> Iterator[Workload]:
    values, filter_ = _bytes(1, 64, 56, 56), _bytes(64, 64, 3, 3, seed=2)
    zero, scale, last = (
        np.array(100, np.uint8),
        np.array(0.0213, np.float32),
        np.array(4.07, np.float32),
    )
    spatial, attributes = _spatial(2, 1, 1, 1, 1)
    whole = {
        "InputTensor": values,
        "InputZeroPointTensor": zero.reshape(1, 1, 1, 1),
        "FilterTensor": filter_,
        "FilterZeroPointTensor": zero.reshape(1, 1, 1, 1),
        **spatial,
    }
    family, what = "convolution", "3x3, 64 channels, 56x56"
    name = "CONVOLUTION_INTEGER"
    integer = {**whole, "OutputTensor": desc(1, 64, 56, 56, of=DataType.INT32)}
    feeds = [values, filter_, zero, zero]
    yield Workload(family, f"{name} {what}", name, integer, "ConvInteger", feeds, attributes)
    name = "QUANTIZED_LINEAR_CONVOLUTION"
    linear = {
        **whole,
        "InputScaleTensor": scale.reshape(1, 1, 1, 1),
        "FilterScaleTensor": scale.reshape(1, 1, 1, 1),
        "OutputScaleTensor": last.reshape(1, 1, 1, 1),
        "OutputZeroPointTensor": zero.reshape(1, 1, 1, 1),
        "OutputTensor": desc(1, 64, 56, 56, of=UINT8),
    }
    feeds = [values, scale, zero, filter_, scale, zero, last, zero]
    yield Workload(family, f"{name} {what}", name, linear, "QLinearConv", feeds, attributes)


def _poolings() -> Iterator[Workload]:
    image = random_tensor(1, 64, 112, 112, low=-1)
    average = {"IncludePadding": False}
    yield _pooling("AVERAGE_POOLING 2x2", "AveragePool", image, 2, 2, 0, 1, average)
    yield _pooling("AVERAGE_POOLING 3x3 of stride 2", "AveragePool", image, 3, 2, 1, 1, average)
    yield _pooling("AVERAGE_POOLING1 3x3 of dilation 2", "AveragePool", image, 3, 1, 2, 2, average)
    yield _pooling(
        "AVERAGE_POOLING of everything", "GlobalAveragePool", image, 112, 1, 0, 1, average
    )
    yield _pooling("LP_POOLING 3x3 of stride 2", "LpPool", image, 3, 2, 1, 1, {"P": 2}, {"p": 2})


def _max_poolings() -> Iterator[Workload]:
    image = random_tensor(1, 64, 112, 112, low=-1)
    yield _pooling("MAX_POOLING 2x2", "MaxPool", image, 2, 2, 0, 1)
    yield _pooling("MAX_POOLING 3x3 of stride 2", "MaxPool", image, 3, 2, 1, 1)
    yield _pooling("MAX_POOLING2 3x3 of dilation 2", "MaxPool", image, 3, 1, 2, 2)
    indices = {"OutputIndicesTensor": desc(1, 64, 56, 56, of=DataType.INT64)}
    yield _pooling(
        "MAX_POOLING1 3x3 of stride 2, indices", "MaxPool", image, 3, 2, 1, 1, indices, outputs=2
    )
    values = random_tensor(1, 64, 56, 56)
    places = np.arange(image.size).reshape(image.shape)[:, :, ::2, 1::2].copy()
    fields = {
        "InputTensor": values,
        "IndicesTensor": places.astype(np.uint64),
        "OutputTensor": desc(*image.shape),
    }
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    name = "MAX_UNPOOLING"
    yield Workload("pooling", name, name, fields, "MaxUnpool", [values, places], attributes)


def _pooling(
    name: str,
    node: str,
    image: Array,
    size: int,
    stride: int,
    padding: int,
    dilation: int,
    fields: dict[str, Any] | None = None,
    attributes: dict[str, Any] | None = None,
    *,
    outputs: int = 1,
) -> Workload:
    """Return a pooling of an image, with the same window in both dimensions."""
    operator = name.split()[0]
    spatial = _outputs(image.shape[2:], (size, size), stride, dilation, padding, forward=True)
    window, node_attributes = _spatial(2, stride, dilation, padding, 1)
    del window["GroupCount"], node_attributes["group"]
    if not operator.endswith(("POOLING1", "POOLING2")) or "OutputIndicesTensor" in (fields or {}):
        del window["Dilations"], node_attributes["dilations"]
    arguments = {
        "InputTensor": image,
        "OutputTensor": desc(*image.shape[:2], *spatial),
        "WindowSize": [size, size],
        **window,
        **(fields or {}),
    }
    node_attributes |= {"kernel_shape": [size, size], **(attributes or {})}
    if node.startswith("Global"):
        node_attributes = {}
    what = f"{name}, {image.shape[1]} channels, {image.shape[2]}x{image.shape[3]}"
    return Workload("pooling", what, operator, arguments, node, [image], node_attributes, outputs)


def _spatial(
    rank: int, stride: int, dilation: int, padding: int, groups: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return how a window moves, as DirectML's fields and as ONNX's attributes."""
    strides, dilations, start = [stride] * rank, [dilation] * rank, [padding] * rank
    fields = {
        "Strides": strides,
        "Dilations": dilations,
        "StartPadding": start,
        "EndPadding": start,
        "GroupCount": groups,
    }
    pads = {"pads": [padding] * (2 * rank), "group": groups}
    return fields, {"strides": strides, "dilations": dilations, **pads}


def _outputs(
    sizes: Sequence[int],
    window: Sequence[int],
    stride: int,
    dilation: int,
    padding: int,
    *,
    forward: bool,
) -> list[int]:
    """Return the spatial sizes of the output."""
    reaches = [(size - 1) * dilation + 1 for size in window]
    pairs = list(zip(sizes, reaches, strict=True))
    if forward:
        return [(size + 2 * padding - reach) // stride + 1 for size, reach in pairs]
    return [(size - 1) * stride + reach - 2 * padding for size, reach in pairs]


def _bytes(*sizes: int, seed: int = 1) -> Array:
    return random_tensor(*sizes, seed=seed, high=200).astype(np.uint8)
