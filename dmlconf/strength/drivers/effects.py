"""Effects of driver defects: wrong reads, arithmetic and writes, many of them in any operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from zlib import crc32

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.strength.drivers.attributes import exchanged, set_attributes
from dmlconf.strength.drivers.computation import Arrays, Computation, Effect, Settings
from dmlconf.strength.drivers.elements import overflow, read, write
from dmlconf.strength.drivers.long_sums import half_sums
from dmlconf.strength.injection import Site
from dmlconf.strength.sums import MOST_PARTS, added_up, partial_sums, summed_axis
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.layout import element_offsets, layout_class

__all__ = ["EFFECTS", "ranked"]


def _packed(right: Computation, settings: Settings) -> Arrays | None:
    """Ignore strides, as if tensors were packed.

    Settings: `tensors`, inputs or outputs; `only`, the only tensor; `layout`, the only layout.
    """
    reads = settings["tensors"] == "inputs"
    changed = {}
    for name, array in (right.inputs if reads else right.outputs).items():
        tensor = right.tensor(name)
        if tensor.Strides is None or not array.size or settings.get("only", name) != name:
            continue
        layout = layout_class(tensor.Sizes, tensor.Strides)
        if settings.get("layout", layout) != layout:
            continue
        offsets = element_offsets(tensor.Sizes, tensor.Strides)
        buffer = np.zeros(max(int(offsets.max()) + 1, array.size), array.dtype)
        if reads:
            buffer[offsets] = array
            changed[name] = buffer[: array.size].reshape(array.shape)
        else:
            buffer[: array.size] = array.ravel()
            changed[name] = buffer[offsets]
    return (right.again(changed) if reads else changed) if changed else None


def _narrow(right: Computation, settings: Settings) -> Arrays | None:
    """Round inputs before use, except indices.

    Settings: `type`, or the `bits` that FLOAT32 fractions keep; `inputs`, by default all.
    """
    chosen = settings.get("inputs", list(right.inputs))
    changed = {
        name: _rounded(right.inputs[name], settings)
        for name in chosen
        if name in right.inputs and "Ind" not in name
    }
    return right.again(changed) if changed else None


def _rounded(array: Array, settings: Settings) -> Array:
    with np.errstate(all="ignore"):
        if "bits" in settings:
            if array.dtype != np.float32:
                return array
            drop = 23 - settings["bits"]
            bits = array.view(np.uint32) + np.uint32(1 << (drop - 1))
            short = (bits & np.uint32(0xFFFF_FFFF << drop & 0xFFFF_FFFF)).view(np.float32)
            return np.where(np.isfinite(array), short, array)
        narrow = array.astype(DataType(settings["type"]).dtype)
        if array.dtype.kind != "f":
            info = np.iinfo(array.dtype)
            # float(info.max) may exceed info.max.
            largest = float(np.finfo(narrow.dtype).max)
            wide = np.nan_to_num(narrow.astype(np.float64), posinf=largest, neginf=-largest)
            inside = (wide >= info.min) & (wide < float(info.max))
            return np.where(inside, np.where(inside, wide, 0).astype(array.dtype), array)
        return narrow.astype(array.dtype)


def _narrow_output(right: Computation, settings: Settings) -> Arrays | None:
    """Round outputs; settings: `type`, or the `bits` that FLOAT32 fractions keep."""
    return {name: _rounded(array, settings) for name, array in right.outputs.items()}


def _noise(right: Computation, settings: Settings) -> Arrays | None:
    """Move floating-point outputs by `steps` ULP up or down, at random.

    Only numbers of at least 4 times the least normal size move, and only to finite numbers of the
    same sign.
    """
    changed = {}
    rng = np.random.default_rng(crc32(right.case.identifier.encode()))
    for name, array in right.outputs.items():
        if array.dtype.kind != "f":
            continue
        bits = array.view(f"i{array.itemsize}")
        step = bits.dtype.type(settings["steps"]) * rng.choice((-1, 1), array.shape)
        moved = (bits + step.astype(bits.dtype)).view(array.dtype)
        normal = np.isfinite(array) & (np.abs(array) >= 4 * np.finfo(array.dtype).tiny)
        normal &= np.isfinite(moved) & ((moved < 0) == (array < 0))
        changed[name] = np.where(normal, moved, array)
    return changed or None


def _sum(right: Computation, settings: Settings) -> Arrays | None:
    """Add up in another `type`: in an `order` of `sums.ORDERS`, or by tiles of about `tile` terms.

    The terms of one tile are added up in FLOAT64.
    """
    name = next(iter(right.outputs))
    site = Site(right.case, right.outputs, name)
    precision = DataType(settings["type"]).dtype.type
    if "order" in settings:
        total = added_up(site, settings["order"], precision)
        return None if total is None else {name: total}
    parts = partial_sums(site)
    if parts is None:
        return None
    first = next(iter(right.inputs.values()))
    step = -(-first.shape[summed_axis(right.case)] // MOST_PARTS)
    tile = max(1, settings["tile"] // step)
    with np.errstate(all="ignore"):
        total = parts[0].astype(precision)
        for start in range(1, len(parts), tile):
            part = np.sum(parts[start : start + tile], axis=0)
            total = (total + part.astype(precision)).astype(precision)
        return {name: total.astype(right.outputs[name].dtype)}


def _low(array: Array) -> Array:
    low: Array = array & array.dtype.type(0xFFFF_FFFF)
    return low


def _words(right: Computation, settings: Settings) -> Arrays | None:
    """Drop the upper 32 bits of 64-bit integers; settings: `of`, inputs or output."""
    arrays = right.inputs if settings["of"] == "inputs" else right.outputs
    changed = {
        name: _low(array)
        for name, array in arrays.items()
        if array.dtype.kind in "iu" and array.itemsize == 8
    }
    if not changed:
        return None
    return right.again(changed) if settings["of"] == "inputs" else changed


def _high_word(right: Computation, settings: Settings) -> Arrays | None:
    """Set bit 32 of 64-bit outputs, as if their high words were not written."""
    return {
        name: array | array.dtype.type(1 << 32)
        for name, array in right.outputs.items()
        if array.dtype.kind in "iu" and array.itemsize == 8
    } or None


def _unsigned(right: Computation, settings: Settings) -> Arrays | None:
    """Treat signed integers of the first input's type as unsigned ones."""
    signed = right.tensor(next(iter(right.inputs))).DataType
    if signed.is_float or not signed.is_signed:
        return None
    other = DataType(f"U{signed}")
    desc: dict[str, Any] = {}
    for field, value in right.desc.items():
        if isinstance(value, TensorDesc) and value.DataType == signed:
            desc[field] = replace(value, DataType=other)
    inputs = {
        name: array.view(other.dtype)
        for name, array in right.inputs.items()
        if right.tensor(name).DataType == signed
    }
    outputs = right.again(inputs, desc)
    return outputs and {
        name: array.view(right.outputs[name].dtype)
        for name, array in outputs.items()
        if array.dtype.itemsize == right.outputs[name].itemsize
    }


def _nan_output(right: Computation, settings: Settings) -> Arrays | None:
    """Replace special outputs; settings: `of`, nan or infinite, and `to`, NaN by default."""
    special = np.isnan if settings["of"] == "nan" else np.isinf
    return {
        name: np.where(special(array), array.dtype.type(settings.get("to", np.nan)), array)
        for name, array in right.outputs.items()
        if array.dtype.kind == "f"
    } or None


def _nan_input(right: Computation, settings: Settings) -> Arrays | None:
    """Read NaN as -infinity."""
    inputs = {
        name: np.where(np.isnan(array), array.dtype.type(-np.inf), array)
        for name, array in right.inputs.items()
        if array.dtype.kind == "f"
    }
    return right.again(inputs) if inputs else None


def _gates(right: Computation, settings: Settings) -> Arrays | None:
    """Take the blocks along an axis in another order; settings: `order`, `inputs`, `axis`."""
    order, axis = settings["order"], settings["axis"]
    inputs = {}
    for name in settings["inputs"]:
        if name in right.inputs:
            blocks = np.split(right.inputs[name], len(order), axis)
            inputs[name] = np.concatenate([blocks[i] for i in order], axis)
    return right.again(inputs) if inputs else None


def _exchange_directions(right: Computation, settings: Settings) -> Arrays | None:
    """Exchange the weights of the forward and the backward direction; settings: `input`."""
    name = settings["input"]
    return right.again({name: np.ascontiguousarray(np.flip(right.inputs[name], -3))})


def _grouped(right: Computation, settings: Settings) -> Arrays | None:
    """Use the filter of another group; settings: `input`, and `use`, first or next."""
    array, groups = right.inputs[settings["input"]], right.desc["GroupCount"]
    size = array.shape[0] // groups
    if settings["use"] == "next":
        return right.again({settings["input"]: np.roll(array, -size, 0)})
    repeated = np.concatenate([array[:size]] * groups)
    return right.again({settings["input"]: repeated})


def _heads(right: Computation, settings: Settings) -> Arrays | None:
    """Write the result of the first head for all heads."""
    array = right.outputs["OutputTensor"]
    heads = right.desc.get("HeadCount") or right.desc["QueryHeadCount"]
    if heads < 2 or array.shape[-1] % heads:
        return None
    size = array.shape[-1] // heads
    return {"OutputTensor": np.concatenate([array[..., :size]] * heads, -1)}


def _exchange(right: Computation, settings: Settings) -> Arrays | None:
    """Exchange two inputs if their sizes are equal; settings: `inputs`."""
    one, other = settings["inputs"]
    if one not in right.inputs or other not in right.inputs:
        return None
    if right.inputs[one].shape != right.inputs[other].shape:
        return None
    return right.again({one: right.inputs[other], other: right.inputs[one]})


def _reverse(right: Computation, settings: Settings) -> Arrays | None:
    """Read an input backwards along an axis; settings: `input`, `axis`."""
    array = right.inputs[settings["input"]]
    return right.again({settings["input"]: np.ascontiguousarray(np.flip(array, settings["axis"]))})


def _reverse_output(right: Computation, settings: Settings) -> Arrays | None:
    """Write the outputs backwards; settings: `axis`, a number or "axis" for the desc's Axis."""
    axis = right.desc["Axis"] if settings["axis"] == "axis" else settings["axis"]
    return {name: np.ascontiguousarray(np.flip(a, axis)) for name, a in right.outputs.items()}


def _swapped(array: Array) -> Array:
    """Return the elements of the transposed matrices, with the sizes unchanged."""
    return np.ascontiguousarray(np.swapaxes(array, -1, -2)).reshape(array.shape)


def _transposed(right: Computation, settings: Settings) -> Arrays | None:
    """Read the matrices of an input as if transposed; settings: `input`."""
    return right.again({settings["input"]: _swapped(right.inputs[settings["input"]])})


def _transposed_output(right: Computation, settings: Settings) -> Arrays | None:
    """Write the matrices of the outputs as if transposed."""
    return {
        name: _swapped(array) for name, array in right.outputs.items() if array.ndim > 1
    } or None


def _other_operator(right: Computation, settings: Settings) -> Arrays | None:
    """Compute another operator; settings: `name`."""
    return right.again(operator=settings["name"])


def _lowest_bit(right: Computation, settings: Settings) -> Arrays | None:
    """Read only the lowest bit of UINT8 inputs."""
    inputs = {n: a & a.dtype.type(1) for n, a in right.inputs.items() if a.dtype == np.uint8}
    return right.again(inputs) if inputs else None


def _flush(right: Computation, settings: Settings) -> Arrays | None:
    """Flush subnormal FLOAT16 numbers of inputs and outputs to zero."""
    tiny = np.finfo(np.float16).tiny

    def flushed(array: Array) -> Array:
        return np.where(np.abs(array) < tiny, np.copysign(np.float16(0), array), array)

    inputs = {n: flushed(a) for n, a in right.inputs.items() if a.dtype == np.float16}
    outputs = right.again(inputs)
    return outputs and {n: flushed(a) for n, a in outputs.items() if a.dtype == np.float16}


def _alias(right: Computation, settings: Settings) -> Arrays | None:
    """In inputs that outputs overwrite, replace every second element by one of the output.

    Element 1 becomes the output's element 0, element 3 its element 2.
    """
    inputs = {}
    for output, source in right.case.in_place.items():
        old, new = right.inputs.get(source), right.outputs.get(output)
        if old is None or new is None or old.shape != new.shape or old.dtype != new.dtype:
            continue
        changed = old.copy().ravel()
        changed[1::2] = new.ravel()[: len(changed) - 1 : 2]
        inputs[source] = changed.reshape(old.shape)
    return right.again(inputs) if inputs else None


def _owned(right: Computation, settings: Settings) -> Arrays | None:
    """Change the inputs that DirectML owns; settings: `value`, a key of `_SPOILED`."""
    spoiled = _SPOILED[settings["value"]]
    inputs = {
        name: np.ascontiguousarray(spoiled(array.ravel())).reshape(array.shape)
        for name, array in right.inputs.items()
        if right.tensor(name).Owned
    }
    return right.again(inputs) if inputs else None


_SPOILED: Final[Mapping[str, Callable[[Array], Array]]] = {
    "zero": np.zeros_like,
    "reversed": np.flip,
    # As if the weights of another layer were read.
    "shifted": lambda flat: np.roll(flat, flat.size // 2 + 1),
}


def _second_output(right: Computation, settings: Settings) -> Arrays | None:
    """Write the first output in place of other outputs of the same sizes."""
    first, *others = right.outputs
    return {
        name: right.outputs[first]
        for name in others
        if right.outputs[name].shape == right.outputs[first].shape
    } or None


def _clamp(right: Computation, settings: Settings) -> Arrays | None:
    """Raise outputs below `low` to `low`; settings: `low`."""
    low = settings["low"]
    return {n: np.maximum(a, a.dtype.type(low)) for n, a in right.outputs.items()}


def _wrap(right: Computation, settings: Settings) -> Arrays | None:
    """Replace outputs at a limit of their integer type by numbers near its other limit."""
    changed = {}
    for name, array in right.outputs.items():
        if array.dtype.kind in "iu":
            info = np.iinfo(array.dtype)
            wrapped = np.where(array == info.max, info.min + 3, array)
            changed[name] = np.where(array == info.min, info.max - 3, wrapped).astype(array.dtype)
    return changed or None


def ranked(array: Array, *, last_is_greater: bool) -> Array:
    """Return each element's rank from 0 on, in FLOAT32, which is exact for up to 2^24 elements.

    Of equal elements, the last ranks highest if `last_is_greater`, else the first.
    """
    flat = array.ravel()
    indices = np.arange(flat.size)
    order = np.lexsort((indices if last_is_greater else -indices, flat))
    ranks = np.empty(flat.size, np.float32)
    ranks[order] = indices
    return ranks.reshape(array.shape)


def _ties(right: Computation, settings: Settings) -> Arrays | None:
    """Take the last of equal elements instead of the first."""
    array = right.inputs["InputTensor"]
    if array.size > 1 << 23 or (array.dtype.kind == "f" and np.isnan(array).any()):
        return None
    greatest = right.desc.get("AxisDirection", "DECREASING") == "DECREASING"
    ranks = ranked(array, last_is_greater=greatest)
    desc = {
        name: replace(right.desc[name], DataType=DataType.FLOAT32)
        for name in ("InputTensor", "OutputTensor", "OutputValueTensor")
        if isinstance(right.desc.get(name), TensorDesc)
    }
    outputs = right.again({"InputTensor": ranks}, desc)
    if outputs is None:
        return None
    if right.case.operator_name.startswith("ACTIVATION"):
        return {name: a.astype(right.outputs[name].dtype) for name, a in outputs.items()}
    return {name: a for name, a in outputs.items() if "Ind" in name} or None


EFFECTS: Final[Mapping[str, Effect]] = {
    "alias": _alias,
    "clamp": _clamp,
    "exchange": _exchange,
    "exchange_attributes": exchanged,
    "exchange_directions": _exchange_directions,
    "flush": _flush,
    "gates": _gates,
    "grouped": _grouped,
    "half_sums": half_sums,
    "heads": _heads,
    "high_word": _high_word,
    "lowest_bit": _lowest_bit,
    "nan_input": _nan_input,
    "nan_output": _nan_output,
    "narrow": _narrow,
    "narrow_output": _narrow_output,
    "noise": _noise,
    "other_operator": _other_operator,
    "owned": _owned,
    "overflow": overflow,
    "packed": _packed,
    "read": read,
    "reverse": _reverse,
    "reverse_output": _reverse_output,
    "second_dispatch": write,
    "second_output": _second_output,
    "set": set_attributes,
    "sum": _sum,
    "ties": _ties,
    "transposed": _transposed,
    "transposed_output": _transposed_output,
    "unsigned": _unsigned,
    "words": _words,
    "wrap": _wrap,
    "write": write,
}
"""Effects by their names in entries of driver defects; `catalogue` adds some."""
