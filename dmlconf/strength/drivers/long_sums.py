"""Long sums that a kernel rounds to FLOAT16 after every so many terms."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.strength.drivers.run import Arrays, Run, Settings
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["half_sums"]

_OUTPUT: Final = "OutputTensor"


def half_sums(run: Run, settings: Settings) -> Arrays | None:
    """Return the outputs of a GEMM or a convolution whose sums are FLOAT16 after every few terms.

    Settings: `every`, the number of terms between two roundings, whose sums are FLOAT32. A
    convolution rounds after whole channels: with `every: 32` and windows of 9 elements after each
    3 channels, whose 27 terms are the most below 32; with windows of 25 after each channel.
    """
    if run.case.operator_name == "GEMM":
        return {_OUTPUT: _product(run, settings["every"])}
    total = _convolution(run, settings["every"])
    return None if total is None else {_OUTPUT: total}


def _held(total: Array, part: Array) -> Array:
    """Return a FLOAT16 sum and one part more, FLOAT16."""
    with np.errstate(all="ignore"):
        held: Array = (total + part).astype(np.float16)
        return held


def _product(run: Run, every: int) -> Array:
    def matrix(name: str, transposition: str) -> Array:
        array = run.inputs[name].astype(np.float32)
        return array.swapaxes(-1, -2) if run.desc[transposition] == "TRANSPOSE" else array

    a, b = matrix("ATensor", "TransA"), matrix("BTensor", "TransB")
    total = np.zeros(run.outputs[_OUTPUT].shape, np.float16)
    for start in range(0, a.shape[-1], every):
        some = slice(start, start + every)
        total = _held(total, a[..., some] @ b[..., some, :])
    scaled = total * np.float64(run.desc["Alpha"])
    if "CTensor" in run.inputs:
        scaled = scaled + run.inputs["CTensor"] * np.float64(run.desc["Beta"])
    return scaled.astype(np.float16)


def _convolution(run: Run, every: int) -> Array | None:
    image, filter_ = run.inputs["InputTensor"], run.inputs["FilterTensor"]
    groups, channels = run.desc["GroupCount"], filter_.shape[1]
    step = max(1, every // prod(filter_.shape[2:]))
    total = np.zeros(run.outputs[_OUTPUT].shape, np.float16)
    for start in range(0, channels, step):
        stop = min(start + step, channels)
        chosen = np.add.outer(np.arange(groups) * channels, np.arange(start, stop)).ravel()
        part = _part(run, image[:, chosen], filter_[:, start:stop])
        if part is None:
            return None
        total = _held(total, part)
    if "BiasTensor" in run.inputs:
        total = _held(total, run.inputs["BiasTensor"])
    return total


def _part(run: Run, image: Array, filter_: Array) -> Array | None:
    """Return the convolution of some channels, FLOAT32, without a bias."""
    arrays = {"InputTensor": image, "FilterTensor": filter_}
    desc: dict[str, Any] = {
        name: TensorDesc(DataType.FLOAT32, array.shape) for name, array in arrays.items()
    }
    output = replace(run.desc[_OUTPUT], DataType=DataType.FLOAT32)
    desc |= {_OUTPUT: output, "BiasTensor": None}
    wide = {name: array.astype(np.float32) for name, array in arrays.items()}
    parts = run.again(wide, desc)
    return None if parts is None else parts[_OUTPUT]
