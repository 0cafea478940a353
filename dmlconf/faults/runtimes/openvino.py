"""Formulas of wrong results of ONNX Runtime's OpenVINO provider.

The modules `openvino_...` have the formulas of activations, graphs and integers.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.reference.evaluation import evaluate

__all__ = [
    "extremes_of_infinities",
    "held_subnormals_as_0",
    "interleaved_blocks",
    "nan_taken_for_greater",
    "no_index_of_the_lowest_integer",
    "odd_windows_with_a_whole_bias",
    "recurrent_parts_left_out",
    "reductions_along_no_axis_left_out",
    "sequences_that_saturate",
    "zero_for_infinite_scales",
]


@of_operators(
    *("ACTIVATION_RELU_GRAD", "ELEMENT_WISE_CLIP_GRAD", "ELEMENT_WISE_CLIP_GRAD1"),
    *("ELEMENT_WISE_LOGICAL_GREATER_THAN", "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL"),
)
def nan_taken_for_greater(case: Case) -> Computed | None:
    """Return the outputs if `a > b` and `a >= b` are true where a or b is NaN.

    ACTIVATION_RELU_GRAD then passes the gradient on for NaN. For ELEMENT_WISE_CLIP_GRAD, a Min of
    NaN counts as negative infinity. None for integers.
    """
    inputs = case.inputs()
    if any(array.dtype.kind != "f" for array in inputs.values()):
        return None
    if case.operator_name == "ACTIVATION_RELU_GRAD":
        tensor = inputs["InputTensor"]
        above = np.where(np.isnan(tensor), tensor.dtype.type(1), tensor)
        return Computed(evaluate(case, {**inputs, "InputTensor": above}))
    if "Min" in case.desc:
        if not np.isnan(case.desc["Min"]):
            return None
        return Computed(evaluate(replace(case, desc={**case.desc, "Min": -np.inf})))
    right = evaluate(case)["OutputTensor"]
    nan = np.isnan(inputs["ATensor"]) | np.isnan(inputs["BTensor"])
    return Computed({"OutputTensor": np.where(nan, right.dtype.type(1), right)})


@of_operators("GRU", "LSTM", "RNN")
def recurrent_parts_left_out(case: Case) -> Computed | None:
    """Return the outputs of GRU, LSTM and RNN without the fields that the runtime ignores.

    The runtime ignores LSTM's peepholes and CoupleInputForget. A second direction uses the first
    direction's activations.
    """
    activations = case.desc["ActivationDescs"]
    if case.desc["Direction"] == "BIDIRECTIONAL":
        activations = activations[: len(activations) // 2] * 2
    desc: dict[str, Any] = {**case.desc, "ActivationDescs": activations}
    data = dict(case.data)
    if case.operator_name == "LSTM":
        desc |= {"PeepholeTensor": None, "CoupleInputForget": False}
        data.pop("PeepholeTensor", None)
    if desc == case.desc:
        return None
    other = replace(case, desc=desc, data=data)
    return Computed(evaluate(other), around=other)


@of_operators("DEQUANTIZE")
def interleaved_blocks(case: Case) -> Computed | None:
    """Return DEQUANTIZE's output if element i belongs to block i modulo n, of n blocks.

    Of six elements in two blocks, 0, 2 and 4 belong to block 0. None unless only the second axis
    has blocks.
    """
    inputs = case.inputs()
    sizes = inputs["InputTensor"].shape
    blocks = inputs["QuantizationTensors[0]"].shape
    if (
        len(sizes) < 2
        or sizes[1] == blocks[1]
        or (sizes[0], *sizes[2:]) != (blocks[0], *blocks[2:])
    ):
        return None
    repeated = [sizes[1] // blocks[1] if axis == 1 else 1 for axis in range(len(sizes))]
    tiled = {name: np.tile(array, repeated) for name, array in inputs.items()}
    return Computed(evaluate(case, {**tiled, "InputTensor": inputs["InputTensor"]}))


@of_operators("LOCAL_RESPONSE_NORMALIZATION")
def odd_windows_with_a_whole_bias(case: Case) -> Computed | None:
    """Return LOCAL_RESPONSE_NORMALIZATION's output with an odd window and a whole Bias.

    With a LocalSize of 4, three squares are added up and divided by 4. A Bias of 0.5 becomes 0.
    None if Bias is infinite or NaN, or if windows do not cross channels.
    """
    desc = case.desc
    if not desc["CrossChannel"] or not np.isfinite(desc["Bias"]):
        return None
    size = desc["LocalSize"]
    odd = size - 1 + size % 2
    wrong = {"LocalSize": odd, "Alpha": desc["Alpha"] * odd / size, "Bias": int(desc["Bias"])}
    other = replace(case, desc={**desc, **wrong})
    return Computed(evaluate(other), around=other)


@of_operators("REDUCE")
def reductions_along_no_axis_left_out(case: Case) -> Computed | None:
    """Return REDUCE's input if there is no axis: L2 of -4 gives -4, not 4."""
    output, tensor = case.desc["OutputTensor"], case.inputs()["InputTensor"]
    if case.desc["AxisCount"] or tensor.dtype != output.DataType.dtype:
        return None
    return Computed({"OutputTensor": tensor.reshape(output.Sizes)})


@of_operators("REDUCE")
def extremes_of_infinities(case: Case) -> Computed | None:
    """Return the FLOAT32 output of REDUCE with MAX or MIN if infinities are made finite.

    A MAX of -infinity is the least finite number, and a MIN of infinity the greatest.
    """
    function, right = case.desc["Function"], evaluate(case)["OutputTensor"]
    if function not in ("MAX", "MIN") or right.dtype != np.float32:
        return None
    limits = np.finfo(right.dtype)
    is_max = function == "MAX"
    held = np.maximum(right, limits.min) if is_max else np.minimum(right, limits.max)
    return Computed({"OutputTensor": held})


@of_operators("MAX_POOLING1", "MAX_POOLING2")
def no_index_of_the_lowest_integer(case: Case) -> Computed | None:
    """Return the outputs of MAX_POOLING1 and MAX_POOLING2 if the lowest integer's index is wrong.

    If a window's maximum is the lowest integer, such as 0 for UINT8, its index is that of the
    channel's first element.
    """
    right = evaluate(case)
    greatest, indices = right["OutputTensor"], right.get("OutputIndicesTensor")
    if indices is None or greatest.dtype.kind not in "iu":
        return None
    batches, channels, *spatial = case.desc["InputTensor"].Sizes
    first = np.arange(batches * channels) * prod(spatial)
    firsts = first.reshape(batches, channels, *(1,) * len(spatial)).astype(indices.dtype)
    lowest = greatest == np.iinfo(greatest.dtype).min
    return Computed({**right, "OutputIndicesTensor": np.where(lowest, firsts, indices)})


@of_operators("ACTIVATION_IDENTITY", "ELEMENT_WISE_IF", "PADDING", "TILE")
def held_subnormals_as_0(case: Case) -> Computed | None:
    """Return the outputs if -0 and subnormal numbers in constants of the model are 0."""
    tensors = case.graph.inputs
    flushed = {
        name: np.where(np.abs(array) < np.finfo(array.dtype).tiny, 0, array)
        for name, array in case.inputs().items()
        if tensors[name].Owned and array.dtype.kind == "f"
    }
    return Computed(evaluate(case, {**case.inputs(), **flushed})) if flushed else None


@of_operators("FILL_VALUE_CONSTANT", "FILL_VALUE_SEQUENCE")
def sequences_that_saturate(case: Case) -> Computed | None:
    """Return a constant or a sequence of integers if sums and products saturate.

    INT64 and UINT32 saturate at the limits of INT32, other types at their own limits.
    """
    right = evaluate(case)["OutputTensor"]
    dtype = right.dtype
    if dtype.kind not in "iu":
        return None
    limits = np.iinfo(np.int32 if dtype in (np.int64, np.uint32) else dtype)

    def saturated(number: int) -> int:
        return min(max(number, int(limits.min)), int(limits.max))

    def wrapped(number: int) -> int:
        low = int(np.iinfo(dtype).min)
        return (number - low) % (1 << 8 * dtype.itemsize) + low

    if case.operator_name == "FILL_VALUE_CONSTANT":
        numbers = [saturated(number) for number in right.ravel().tolist()]
    else:
        start, step = wrapped(case.desc["ValueStart"]), wrapped(case.desc["ValueDelta"])
        numbers = [saturated(saturated(index * step) + start) for index in range(right.size)]
    return Computed({"OutputTensor": np.array(numbers, dtype).reshape(right.shape)})


@of_operators("ELEMENT_WISE_QUANTIZE_LINEAR")
def zero_for_infinite_scales(case: Case) -> Computed | None:
    """Return quantized elements with 0, not the zero point, where the scale is infinite."""
    scale, right = case.inputs().get("ScaleTensor"), evaluate(case)["OutputTensor"]
    if scale is None:
        return None
    zero = right.dtype.type(0)
    return Computed({"OutputTensor": np.where(np.isinf(scale), zero, right)})
