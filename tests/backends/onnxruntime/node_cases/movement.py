"""Convert ONNX's node tests of moving elements and of choosing them by indices into cases."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.onnxruntime.node_cases.building import Conversion, case_of
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest
from tests.backends.stated_cases import (
    UNSUPPORTED_SIZES,
    NoCaseError,
    data_type,
    elements_of,
    with_rank,
)
from tests.backends.stated_descs import by_elements, by_tuples, gathered

__all__ = ["CONVERSIONS"]


def _tile(test: NodeTest) -> Case:
    repeats = tuple(test.input(1).tolist())
    return case_of(test, "TILE", RepeatsCount=len(repeats), Repeats=repeats)


def _updates(test: NodeTest) -> Array | None:
    """Return what a scattering writes, or None for a gathering."""
    updates = test.optional(2)
    if updates is not None and test.attributes["reduction"] != "none":
        raise NoCaseError("a reduction while scattering")
    return updates


def _gather(test: NodeTest) -> Case:
    return gathered(test.input(0), test.input(1), test.outputs[0], test.axis).case(
        partial(case_of, test)
    )


def _gather_or_scatter_elements(test: NodeTest) -> Case:
    tensor, indices, output = test.input(0), test.input(1), test.outputs[0]
    return by_elements(tensor, indices, _updates(test), output, test.axis).case(
        partial(case_of, test)
    )


def _gather_or_scatter_nd(test: NodeTest) -> Case:
    tensor, indices, output = test.input(0), test.input(1), test.outputs[0]
    batch = test.attributes.get("batch_dims", 0)
    return by_tuples(tensor, indices, _updates(test), output, batch).case(partial(case_of, test))


def _slice(test: NodeTest) -> Case:
    tensor = test.input(0)
    starts, ends = test.input(1).tolist(), test.input(2).tolist()
    axes_input, steps_input = test.optional(3), test.optional(4)
    axes = range(len(starts)) if axes_input is None else axes_input.tolist()
    steps = [1] * len(starts) if steps_input is None else steps_input.tolist()
    windows = [(0, size, 1) for size in tensor.shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        indices = range(*slice(start, end, step).indices(tensor.shape[axis]))
        if not indices:
            raise NoCaseError(UNSUPPORTED_SIZES)
        first = min(indices[0], indices[-1])
        windows[axis] = (first, abs(indices[-1] - indices[0]) + 1, step)
    offsets, sizes, strides = zip(*windows, strict=True)
    return case_of(
        test,
        "SLICE1",
        DimensionCount=tensor.ndim,
        InputWindowOffsets=offsets,
        InputWindowSizes=sizes,
        InputWindowStrides=strides,
    )


def _pad(test: NodeTest) -> Case:
    modes = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION"}
    mode = modes.get(test.attributes["mode"])
    tensor, pads, value = test.input(0), test.input(1).tolist(), test.optional(2)
    if mode is None or test.optional(3) is not None or min(pads) < 0:
        raise NoCaseError("padding that DirectML lacks")
    return case_of(
        test,
        "PADDING1",
        PaddingMode=mode,
        PaddingValueDataType=data_type(tensor),
        PaddingValue=0 if value is None else value.item(),
        DimensionCount=tensor.ndim,
        StartPadding=tuple(pads[: tensor.ndim]),
        EndPadding=tuple(pads[tensor.ndim :]),
    )


def _depth_and_space(test: NodeTest) -> Case:
    crd = test.attributes.get("mode", "DCR") == "CRD"
    return case_of(
        test,
        "DEPTH_TO_SPACE1" if test.operation == "DepthToSpace" else "SPACE_TO_DEPTH1",
        BlockSize=test.attributes["blocksize"],
        Order="COLUMN_ROW_DEPTH" if crd else "DEPTH_COLUMN_ROW",
    )


def _one_hot(test: NodeTest) -> Case:
    indices, values, output = test.input(0), test.input(2), test.outputs[0]
    axis = test.attributes["axis"] % output.ndim
    if indices.dtype.kind == "f":
        raise NoCaseError("indices that are not integers")
    sizes = (*output.shape[:axis], 1, *output.shape[axis + 1 :])
    inputs = {
        "IndicesTensor": indices.reshape(sizes),
        "ValuesTensor": with_rank(values, output.ndim),
    }
    return case_of(test, "ONE_HOT", inputs, Axis=axis)


def _join(test: NodeTest) -> Case:
    tensors, fields = elements_of("InputTensors", map(test.input, range(len(test.inputs))))
    return case_of(test, "JOIN", tensors, Axis=test.axis, **fields)


def _split(test: NodeTest) -> Case:
    tensors, fields = elements_of("OutputTensors", test.outputs)
    return case_of(test, "SPLIT", outputs=tensors, Axis=test.axis, **fields)


def _reverse(test: NodeTest) -> Case:
    tensor = test.input(0)
    batch, axis = test.attributes["batch_axis"], test.attributes["time_axis"]
    lengths = test.input(1).reshape([-1 if n == batch else 1 for n in range(tensor.ndim)])
    sizes = [1 if n == axis else size for n, size in enumerate(tensor.shape)]
    inputs = {
        "InputTensor": tensor,
        "SequenceLengthsTensor": np.broadcast_to(lengths, sizes).astype(np.uint32),
    }
    return case_of(test, "REVERSE_SUBSEQUENCES", inputs, Axis=axis)


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "Concat": _join,
    "DepthToSpace": _depth_and_space,
    "Gather": _gather,
    "GatherElements": _gather_or_scatter_elements,
    "GatherND": _gather_or_scatter_nd,
    "OneHot": _one_hot,
    "Pad": _pad,
    "ReverseSequence": _reverse,
    "ScatterElements": _gather_or_scatter_elements,
    "ScatterND": _gather_or_scatter_nd,
    "Slice": _slice,
    "SpaceToDepth": _depth_and_space,
    "Split": _split,
    "Tile": _tile,
}
