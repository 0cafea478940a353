"""Effects of driver defects: wrong formulas of operators with sliding windows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

import numpy as np

from dmlconf.strength.drivers.computation import Arrays, Computation, Effect, Settings
from dmlconf.tensors.datatypes import Array

__all__ = ["WINDOW_FORMULAS"]


def _maximum_from_clamped_start(right: Computation, settings: Settings) -> Arrays | None:
    """Move the starts, not the ends, of windows in the padding to the first element."""
    desc, source, output = right.desc, right.inputs["InputTensor"], right.outputs["OutputTensor"]
    window, dilations = desc["WindowSize"], desc["Dilations"]
    starts, ends = [], []
    for axis, size in enumerate(output.shape[2:]):
        first = np.arange(size) * desc["Strides"][axis] - desc["StartPadding"][axis]
        starts.append(np.maximum(first, 0))
        reach = first + (window[axis] - 1) * dilations[axis] + 1
        ends.append(np.minimum(reach, source.shape[2 + axis]))
    result = np.full(output.shape, _least(source), source.dtype)
    for steps in product(*map(range, window)):
        positions, inside = [], np.ones(output.shape[2:], np.bool_)
        for axis, step in enumerate(steps):
            position = starts[axis] + step * dilations[axis]
            shape = [1] * len(window)
            shape[axis] = -1
            inside &= (position < ends[axis]).reshape(shape)
            positions.append(np.minimum(position, source.shape[2 + axis] - 1))
        samples = source[(..., *np.ix_(*positions))]
        result = np.where(inside, np.maximum(result, samples), result)
    return {"OutputTensor": result}


def _least(array: Array) -> Array | float:
    return -np.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).min


def _indices_of_padded_input(right: Computation, settings: Settings) -> Arrays | None:
    indices = right.outputs.get("OutputIndicesTensor")
    if indices is None:
        return None
    sizes = right.inputs["InputTensor"].shape
    padded = list(sizes)
    positions = list(
        np.unravel_index(np.minimum(indices, np.prod(sizes) - 1).astype(np.int64), sizes)
    )
    for axis, (before, behind) in enumerate(
        zip(right.desc["StartPadding"], right.desc["EndPadding"], strict=True), 2
    ):
        padded[axis] += before + behind
        positions[axis] = positions[axis] + before
    result = np.ravel_multi_index(tuple(positions), tuple(padded))
    return {"OutputIndicesTensor": result.astype(indices.dtype)}


def _indices_of_channels_last(right: Computation, settings: Settings) -> Arrays | None:
    """Count the input's elements with the channels last."""
    indices = right.outputs["OutputIndicesTensor"]
    batch, channels, *spatial = right.inputs["InputTensor"].shape
    sizes = (batch, channels, *spatial)
    inside = np.minimum(indices, np.prod(sizes) - 1).astype(np.int64)
    first, channel, *pixel = np.unravel_index(inside, sizes)
    result = np.ravel_multi_index((first, *pixel, channel), (batch, *spatial, channels))
    return {"OutputIndicesTensor": result.astype(indices.dtype)}


WINDOW_FORMULAS: Final[Mapping[str, Effect]] = {
    "indices_of_channels_last": _indices_of_channels_last,
    "indices_of_padded_input": _indices_of_padded_input,
    "maximum_from_clamped_start": _maximum_from_clamped_start,
}
