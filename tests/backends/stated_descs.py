"""Tensors and fields of cases that are made from ONNX's tests and from WebNN's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.stated_cases import with_rank

__all__ = ["Indexing", "by_elements", "by_tuples", "gathered", "recurrent_fields"]


@dataclass(frozen=True, slots=True)
class Indexing:
    """One of DirectML's operators that use indices, with its tensors and other fields by name."""

    operator: str
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    fields: Mapping[str, Any]

    def case(self, case_of: Callable[..., Case]) -> Case:
        return case_of(self.operator, self.inputs, self.outputs, **self.fields)


def gathered(tensor: Array, indices: Array, output: Array, axis: int) -> Indexing:
    """Return GATHER, in which all tensors have as many dimensions as the output."""
    rank = tensor.ndim + max(indices.ndim, 1) - 1
    sizes = (*tensor.shape[:axis], *(indices.shape or (1,)), *tensor.shape[axis + 1 :])
    return Indexing(
        "GATHER",
        {"InputTensor": with_rank(tensor, rank), "IndicesTensor": with_rank(indices, rank)},
        {"OutputTensor": output.reshape(sizes)},
        {"Axis": rank - tensor.ndim + axis, "IndexDimensions": max(indices.ndim, 1)},
    )


def by_elements(
    tensor: Array, indices: Array, updates: Array | None, output: Array, axis: int
) -> Indexing:
    """Return GATHER_ELEMENTS, or SCATTER_ELEMENTS if there are updates."""
    inputs = {"InputTensor": tensor, "IndicesTensor": indices}
    outputs, fields = {"OutputTensor": output}, {"Axis": axis}
    if updates is None:
        return Indexing("GATHER_ELEMENTS", inputs, outputs, fields)
    return Indexing("SCATTER_ELEMENTS", {**inputs, "UpdatesTensor": updates}, outputs, fields)


def by_tuples(
    tensor: Array, indices: Array, updates: Array | None, output: Array, batch_dimensions: int
) -> Indexing:
    """Return SCATTER_ND if there are updates, else GATHER_ND1 with the batch dimensions."""
    rank = max(tensor.ndim, indices.ndim, output.ndim, 0 if updates is None else updates.ndim)
    inputs = {"InputTensor": with_rank(tensor, rank), "IndicesTensor": with_rank(indices, rank)}
    outputs = {"OutputTensor": with_rank(output, rank)}
    fields = {"InputDimensionCount": tensor.ndim, "IndicesDimensionCount": indices.ndim}
    if updates is None:
        fields["BatchDimensionCount"] = batch_dimensions
        return Indexing("GATHER_ND1", inputs, outputs, fields)
    inputs["UpdatesTensor"] = with_rank(updates, rank)
    return Indexing("SCATTER_ND", inputs, outputs, fields)


def recurrent_fields(
    operator: str, activations: Sequence[str], direction: str, *, linear_before_reset: bool
) -> dict[str, Any]:
    """Return the fields of RNN, GRU or LSTM that are no tensors; nothing is clipped."""
    fields: dict[str, Any] = {
        "ActivationDescCount": len(activations),
        "ActivationDescs": tuple(
            {"operator": each, "InputTensor": None, "OutputTensor": None} for each in activations
        ),
        "Direction": direction,
    }
    if operator == "GRU":
        fields["LinearBeforeReset"] = linear_before_reset
    if operator == "LSTM":
        fields |= {"UseClipThreshold": False, "ClipThreshold": 0.0, "CoupleInputForget": False}
    return fields
