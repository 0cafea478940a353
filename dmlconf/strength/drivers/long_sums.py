"""Long sums that a kernel rounds to FLOAT16 repeatedly."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.strength.drivers.computation import Arrays, Computation, Settings
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["half_sums"]

_OUTPUT: Final = "OutputTensor"


def half_sums(right: Computation, settings: Settings) -> Arrays | None:
    """Return the outputs of a GEMM or a convolution that rounds its sums to FLOAT16 repeatedly.

    The setting `every` is the number of terms that are added up in FLOAT32 between two roundings. A
    convolution rounds only after whole channels: as many as have at most `every` terms, at least 1.

    Fused activations and BACKWARD convolutions are not supported. None if the reference fails.
    """
    if right.case.operator_name == "GEMM":
        return {_OUTPUT: _product(right, settings["every"])}
    total = _convolution(right, settings["every"])
    return None if total is None else {_OUTPUT: total}


def _held(total: Array, part: Array) -> Array:
    with np.errstate(all="ignore"):
        held: Array = (total + part).astype(np.float16)
        return held


def _product(right: Computation, every: int) -> Array:
    def matrix(name: str, transposition: str) -> Array:
        array = right.inputs[name].astype(np.float32)
        return array.swapaxes(-1, -2) if right.desc[transposition] == "TRANSPOSE" else array

    a, b = matrix("ATensor", "TransA"), matrix("BTensor", "TransB")
    total = np.zeros(right.outputs[_OUTPUT].shape, np.float16)
    for start in range(0, a.shape[-1], every):
        some = slice(start, start + every)
        total = _held(total, a[..., some] @ b[..., some, :])
    scaled = total * np.float64(right.desc["Alpha"])
    if "CTensor" in right.inputs:
        scaled = scaled + right.inputs["CTensor"] * np.float64(right.desc["Beta"])
    return scaled.astype(np.float16)


def _convolution(right: Computation, every: int) -> Array | None:
    image, filter_ = right.inputs["InputTensor"], right.inputs["FilterTensor"]
    groups, channels = right.desc["GroupCount"], filter_.shape[1]
    step = max(1, every // prod(filter_.shape[2:]))
    total = np.zeros(right.outputs[_OUTPUT].shape, np.float16)
    for start in range(0, channels, step):
        stop = min(start + step, channels)
        chosen = np.add.outer(np.arange(groups) * channels, np.arange(start, stop)).ravel()
        part = _part(right, image[:, chosen], filter_[:, start:stop])
        if part is None:
            return None
        total = _held(total, part)
    if "BiasTensor" in right.inputs:
        total = _held(total, right.inputs["BiasTensor"])
    return total


def _part(right: Computation, image: Array, filter_: Array) -> Array | None:
    """Return the FLOAT32 convolution of some channels without a bias."""
    arrays = {"InputTensor": image, "FilterTensor": filter_}
    desc: dict[str, Any] = {
        name: TensorDesc(DataType.FLOAT32, array.shape) for name, array in arrays.items()
    }
    output = replace(right.desc[_OUTPUT], DataType=DataType.FLOAT32)
    desc |= {_OUTPUT: output, "BiasTensor": None}
    wide = {name: array.astype(np.float32) for name, array in arrays.items()}
    parts = right.again(wide, desc)
    return None if parts is None else parts[_OUTPUT]
