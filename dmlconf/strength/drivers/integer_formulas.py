"""Effects of driver defects: wrong formulas for integers and quantized numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dmlconf.strength.drivers.computation import Arrays, Computation, Effect, Settings
from dmlconf.tensors.datatypes import Array

__all__ = ["INTEGER_FORMULAS", "quantized"]

_WORD: Final = np.uint64(0xFFFF_FFFF)
_WORD_BITS: Final = np.uint64(32)


def _carry_lost(right: Computation, settings: Settings) -> Arrays | None:
    a, b = (right.inputs[name].view(np.uint64) for name in ("ATensor", "BTensor"))
    subtract = "SUBTRACT" in right.case.operator_name
    low, high = (a & _WORD, b & _WORD), (a >> _WORD_BITS, b >> _WORD_BITS)
    with np.errstate(all="ignore"):
        sums = [(x - y if subtract else x + y) & _WORD for x, y in (low, high)]
    result = sums[0] | (sums[1] << _WORD_BITS)
    return {"OutputTensor": result.view(right.outputs["OutputTensor"].dtype)}


def _words_exchanged(right: Computation, settings: Settings) -> Arrays | None:
    bits = right.outputs["OutputTensor"].view(np.uint64)
    result = (bits >> _WORD_BITS) | (bits << _WORD_BITS)
    return {"OutputTensor": result.view(right.outputs["OutputTensor"].dtype)}


def _arithmetic(right: Computation) -> Array:
    """Return the sum, difference or product as INT64; the inputs have at most 16 bits."""
    a, b = (right.inputs[name].astype(np.int64) for name in ("ATensor", "BTensor"))
    name = right.case.operator_name
    if "SUBTRACT" in name:
        return a - b
    return a * b if "MULTIPLY" in name else a + b


def _arithmetic_saturates(right: Computation, settings: Settings) -> Arrays | None:
    dtype = right.outputs["OutputTensor"].dtype
    info = np.iinfo(dtype)
    return {"OutputTensor": np.clip(_arithmetic(right), info.min, info.max).astype(dtype)}


def _low_byte(right: Computation, settings: Settings) -> Arrays | None:
    output = right.outputs["OutputTensor"]
    return {"OutputTensor": output & output.dtype.type(0xFF)}


def _smallest_saturates(right: Computation, settings: Settings) -> Arrays | None:
    output = right.outputs["OutputTensor"]
    info = np.iinfo(output.dtype)
    return {"OutputTensor": np.where(output == info.min, output.dtype.type(info.max), output)}


def _shift_modulo_bits(right: Computation, settings: Settings) -> Arrays | None:
    shift = right.inputs["BTensor"]
    bits = right.inputs["ATensor"].itemsize * 8
    return right.again({"BTensor": (shift & shift.dtype.type(bits - 1)).astype(shift.dtype)})


def _shift_extends_sign(right: Computation, settings: Settings) -> Arrays | None:
    a, b = right.inputs["ATensor"], right.inputs["BTensor"]
    bits = a.itemsize * 8
    signed = a.view(f"i{a.itemsize}").astype(np.int64)
    shift = np.clip(b.astype(np.uint64), 0, bits - 1).astype(np.int64)
    return {"OutputTensor": (signed >> shift).astype(f"i{a.itemsize}").view(a.dtype)}


def _index_without_lowest_bit(right: Computation, settings: Settings) -> Arrays | None:
    indices = {
        name: np.where(array > 0xFFFF, array & ~array.dtype.type(1), array)
        for name, array in right.outputs.items()
        if "Ind" in name or right.case.operator_name.startswith("ARG")
    }
    return indices or None


def _bits_of_sign_extension(right: Computation, settings: Settings) -> Arrays | None:
    name, output = next(iter(right.outputs.items()))
    source = next(iter(right.inputs.values()))
    extra = output.dtype.type(32 - source.itemsize * 8)
    return {name: np.where(source < 0, output + extra, output)}


def _nibbles_exchanged(right: Computation, settings: Settings) -> Arrays | None:
    flat = right.inputs["InputTensor"].ravel().copy()
    pairs = flat[: len(flat) // 2 * 2].reshape(-1, 2)
    flat[: pairs.size] = pairs[:, ::-1].ravel()
    return right.again({"InputTensor": flat.reshape(right.inputs["InputTensor"].shape)})


def _nibbles_unsigned(right: Computation, settings: Settings) -> Arrays | None:
    source = right.inputs["InputTensor"]
    return right.again({"InputTensor": source & source.dtype.type(0xF)})


def _blocks(right: Computation, name: str, like: Array) -> Array | float:
    """Return a scale or zero point, repeated to the sizes of `like`; 0 if absent."""
    array = right.inputs.get(name)
    if array is None:
        return 0.0
    for axis, size in enumerate(like.shape):
        if array.shape[axis] != size:
            array = np.repeat(array, size // array.shape[axis], axis)
    return array.astype(np.float32)


def quantized(right: Computation, settings: Settings) -> Arrays | None:
    """Quantize in FLOAT32.

    Settings: `rounding`; `wrap`, else clamp; `reciprocal`, to multiply by that of the scale.
    """
    source, output = right.inputs["InputTensor"], right.outputs["OutputTensor"]
    scale = _blocks(right, "ScaleTensor", source)
    zero_point = _blocks(right, "ZeroPointTensor", source)
    x, rounding = source.astype(np.float32), settings["rounding"]
    data_type = right.tensor("OutputTensor").DataType
    with np.errstate(all="ignore"):
        quotient = x * (np.float32(1) / scale) if settings.get("reciprocal") else x / scale
        if rounding == "after_zero_point":
            whole = np.rint(quotient + zero_point)
        elif rounding == "away":
            whole = np.copysign(np.floor(np.abs(quotient) + np.float32(0.5)), quotient)
            whole = whole + zero_point
        else:
            whole = (np.trunc if rounding == "truncate" else np.rint)(quotient) + zero_point
        usual = np.isfinite(whole) & (np.abs(whole) < 2**31)
        if settings.get("wrap"):
            number = np.where(usual, whole, 0).astype(np.int64).astype(output.dtype)
        else:
            number = np.clip(whole, data_type.minimum, data_type.maximum)
            number = np.where(usual, number, 0).astype(output.dtype)
    return {"OutputTensor": np.where(usual, number, output)}


def _saturates_before_zero_point(right: Computation, settings: Settings) -> Arrays | None:
    source, output = right.inputs["InputTensor"], right.outputs["OutputTensor"]
    with np.errstate(all="ignore"):
        quotient = np.rint(source.astype(np.float32) / _blocks(right, "ScaleTensor", source))
        total = np.clip(quotient, -128, 127) + _blocks(right, "ZeroPointTensor", source)
        number = np.clip(total, 0, 255)
    return {"OutputTensor": np.where(np.isnan(number), output, number).astype(output.dtype)}


def _range_without_zero(right: Computation, settings: Settings) -> Arrays | None:
    source = right.inputs["InputTensor"].astype(np.float64)
    low, high = source.min(), source.max()
    if not (low > 0 or high < 0) or not np.isfinite(high - low):
        return None
    scale = right.outputs["OutputScaleTensor"]
    return {"OutputScaleTensor": np.full_like(scale, (high - low) / 255)}


def _pairs_saturated(right: Computation, settings: Settings) -> Arrays | None:
    """Add up pairs of products in INT16, which saturates."""
    a, b = right.inputs["ATensor"], right.inputs["BTensor"]
    if a.shape[-1] < 2 or a.size * b.shape[-1] > 1 << 24:
        return None
    centred = []
    for name, matrix in (("AZeroPointTensor", a), ("BZeroPointTensor", b)):
        zero = right.inputs.get(name)
        if zero is not None and zero.size > 1:
            return None
        centred.append(matrix.astype(np.int64) - (0 if zero is None else int(zero.flat[0])))
    one, other = centred
    products = one[..., :, :, None] * other[..., None, :, :]
    even = products.shape[-2] // 2 * 2
    pairs = np.clip(products[..., 0:even:2, :] + products[..., 1:even:2, :], -32768, 32767)
    total = pairs.sum(-2) + products[..., even:, :].sum(-2)
    return {"OutputTensor": total.astype(right.outputs["OutputTensor"].dtype)}


INTEGER_FORMULAS: Final[Mapping[str, Effect]] = {
    "arithmetic_saturates": _arithmetic_saturates,
    "bits_of_sign_extension": _bits_of_sign_extension,
    "carry_lost": _carry_lost,
    "index_without_lowest_bit": _index_without_lowest_bit,
    "low_byte": _low_byte,
    "nibbles_exchanged": _nibbles_exchanged,
    "nibbles_unsigned": _nibbles_unsigned,
    "pairs_saturated": _pairs_saturated,
    "range_without_zero": _range_without_zero,
    "saturates_before_zero_point": _saturates_before_zero_point,
    "shift_extends_sign": _shift_extends_sign,
    "shift_modulo_bits": _shift_modulo_bits,
    "smallest_saturates": _smallest_saturates,
    "words_exchanged": _words_exchanged,
}
