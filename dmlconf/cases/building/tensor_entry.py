"""Read the tensors of a case: descs, data and expected values."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np

from dmlconf.cases.building.files import CaseFiles
from dmlconf.cases.building.values import ValuesError, tensor_values
from dmlconf.cases.errors import CaseError
from dmlconf.cases.model import Fill
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.documents.problems import name_hint
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.fills import FILLS, fill
from dmlconf.tensors.layout import LAYOUTS, as_stored

__all__ = [
    "LARGEST_EXPECTED_ELEMENTS",
    "expected_array",
    "read_tensor",
    "require_list",
    "whole_numbers",
]

LARGEST_EXPECTED_ELEMENTS: Final = 1 << 26
"""The most elements of an expected output, whose array is made when its case is built."""

MOST_DIMENSIONS: Final = 32
"""The most dimensions of a tensor with data. DirectML takes 8."""

_FLAG_PREFIX: Final = "DML_TENSOR_FLAG_"
_TYPE_PREFIX: Final = "DML_TENSOR_DATA_TYPE_"

_TYPES: Final[Mapping[str, DataType]] = {str(each): each for each in DataType}

# Fills whose arguments are all whole numbers, and arguments that are whole numbers in every fill.
_WHOLE: Final = frozenset({"integers", "sequence"})
_WHOLE_ARGUMENTS: Final = frozenset({"seed", "every", "outliers", "fan_in"})


def read_tensor(
    written: Any,
    name: str,
    data: dict[str, Array | Fill],
    files: CaseFiles,
    where: Sequence[str | int],
) -> TensorDesc:
    """Return the desc of a tensor, and put its data, if any, into `data` under `name`.

    Args:
        name: the tensor's name, such as `InputTensors[0]` for the first one of an array.
        where: the keys and indices that lead to the tensor, for errors.

    Raises:
        CaseError: the entry is not a valid tensor.
    """
    if not isinstance(written, Mapping):
        raise CaseError(where, f"must be a tensor, not {written!r}")
    missing = [key for key in ("Sizes", "DataType") if key not in written]
    if missing:
        raise CaseError(where, f"`{name}` lacks {' and '.join(missing)}")
    sizes = whole_numbers(written["Sizes"], (*where, "Sizes"))
    if "DimensionCount" in written and written["DimensionCount"] != len(sizes):
        message = f"DimensionCount is {written['DimensionCount']}, but Sizes has {len(sizes)}"
        raise CaseError((*where, "DimensionCount"), message, "leave DimensionCount out")
    tensor = _tensor(
        _data_type(written["DataType"], (*where, "DataType")),
        sizes,
        _strides(written, sizes, where),
        _flags(written.get("Flags", ()), (*where, "Flags")),
        _bytes(written, "TotalTensorSizeInBytes", None, where),
        _bytes(written, "GuaranteedBaseOffsetAlignment", 0, where),
    )
    if "values" in written or "fill" in written:
        _limit_dimensions(sizes, (*where, "Sizes"))
        data[name] = _tensor_data(written, tensor, files, where)
    return tensor


_tensor: Final = lru_cache(maxsize=4096)(TensorDesc)
"""Return a desc; equal descs are one object, since most tensors equal an earlier one."""


def _limit_dimensions(sizes: Sequence[int], where: Sequence[str | int]) -> None:
    if len(sizes) > MOST_DIMENSIONS:
        message = f"data of {len(sizes):,} dimensions"
        raise CaseError(where, message, f"at most {MOST_DIMENSIONS}; leave the data out")


_MOST_UINT: Final = 0xFFFF_FFFF

_Bytes = TypeVar("_Bytes", int, int | None)


def _bytes(
    written: Mapping[str, Any], name: str, default: _Bytes, where: Sequence[str | int]
) -> int | _Bytes:
    if name not in written:
        return default
    most = 0xFFFF_FFFF_FFFF_FFFF if name == "TotalTensorSizeInBytes" else _MOST_UINT
    return _whole_number(written[name], (*where, name), most)


def whole_numbers(value: Any, where: Sequence[str | int]) -> tuple[int, ...]:
    """Return a list of whole numbers, each from 0 to 2^32 - 1, as a tuple.

    Raises:
        CaseError: the value is no such list.
    """
    require_list(value, where)
    return tuple(_whole_number(number, (*where, index)) for index, number in enumerate(value))


def _whole_number(value: Any, where: Sequence[str | int], most: int = _MOST_UINT) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise CaseError(where, f"{value!r} is not a whole number of at least 0")
    if value > most:
        raise CaseError(where, f"must be at most {most}, not {value}")
    return value


def _data_type(value: Any, where: Sequence[str | int]) -> DataType:
    name = str(value).removeprefix(_TYPE_PREFIX)
    try:
        return _TYPES[name]
    except KeyError:
        hint = name_hint(name, DataType)
        raise CaseError(where, f"{value!r} is not a data type", hint) from None


def _strides(
    written: Mapping[str, Any], sizes: tuple[int, ...], where: Sequence[str | int]
) -> tuple[int, ...] | None:
    layout = written.get("layout")
    strides = written.get("Strides")
    if layout is None:
        return None if strides is None else whole_numbers(strides, (*where, "Strides"))
    if strides is not None:
        message = "`layout` and `Strides` both say where the elements are"
        raise CaseError((*where, "layout"), message, "keep one of them")
    if not isinstance(layout, str) or layout not in LAYOUTS:
        hint = name_hint(layout, LAYOUTS)
        raise CaseError((*where, "layout"), f"{layout!r} is not a layout", hint)
    return LAYOUTS[layout](sizes)


def _flags(value: Any, where: Sequence[str | int]) -> tuple[str, ...]:
    if value == ():
        return ()
    known = catalogue.enumeration("DML_TENSOR_FLAGS").values
    if not isinstance(value, str):
        require_list(value, where)
    flags = [value] if isinstance(value, str) else list(value)
    names = tuple(str(flag).removeprefix(_FLAG_PREFIX) for flag in flags)
    for name in names:
        if name not in known:
            raise CaseError(where, f"{name!r} is not a flag", f"one of {', '.join(known)}")
    return tuple(name for name in names if name != "NONE")


def _tensor_data(
    written: Mapping[str, Any], tensor: TensorDesc, files: CaseFiles, where: Sequence[str | int]
) -> Array | Fill:
    if "fill" in written:
        return _fill(written["fill"], tensor, (*where, "fill"))
    where = (*where, "values")
    array = _values(written["values"], tensor, files, where)
    strides = tensor.FittingStrides
    if strides is not None:
        same = as_stored(array, strides) == array
        if not (same | (array != array)).all():
            message = (
                "elements that share an offset in the buffer, by Strides, have different values"
            )
            raise CaseError(where, message, "give equal values along a stride of 0")
    return array


_FORM: Final = "write `fill: {uniform: {low: -1, high: 1}}`"


def _fill(written: Any, tensor: TensorDesc, where: Sequence[str | int]) -> Fill:
    parts = {written: {}} if isinstance(written, str) else written
    if not isinstance(parts, Mapping):
        raise CaseError(where, f"must be a fill, not {written!r}", f"one of {', '.join(FILLS)}")
    if len(parts) != 1:
        raise CaseError(where, "a fill has one name", _FORM)
    name, arguments = next(iter(parts.items()))
    if name not in FILLS:
        raise CaseError(where, f"there is no fill {name!r}", name_hint(name, FILLS))
    arguments = arguments or {}
    if not isinstance(arguments, Mapping) or not all(
        isinstance(value, int | float) for value in arguments.values()
    ):
        raise CaseError(where, f"fill {name}: its arguments are numbers by name", _FORM)
    for key, value in arguments.items():
        if (name in _WHOLE or key in _WHOLE_ARGUMENTS) and not isinstance(value, int):
            message = f"fill {name}: {key} is {value}, but must be a whole number"
            raise CaseError((*where, name, key), message)
    # All seeds below 2^32 are valid, so fills that differ only in seeds share one check.
    checked = {**arguments, "seed": 0} if 0 <= arguments.get("seed", -1) < _SEEDS else arguments
    wrong = _fill_error(name, tuple(checked.items()), tensor.DataType)
    if wrong:
        is_form = "missing" in wrong or "unexpected" in wrong
        raise CaseError(where, f"fill {name}: {wrong}", _form_of(name) if is_form else None)
    return Fill(name, arguments)


_SEEDS: Final = 1 << 32


def _form_of(name: str) -> str:
    """Return a hint on how to write a fill, and on its optional arguments."""
    spec = inspect.getfullargspec(FILLS[name])
    needed = [key for key in spec.kwonlyargs if key not in (spec.kwonlydefaults or {})]
    values = {"low": -1, "high": 1}
    arguments = ", ".join(f"{key}: {values.get(key, 1)}" for key in needed)
    optional = ", ".join(spec.kwonlydefaults or {})
    also = f" (optional: {optional})" if optional else ""
    return f"write `fill: {{{name}: {{{arguments}}}}}`{also}" if needed else f"`fill: {name}`{also}"


@lru_cache(maxsize=1024)
def _fill_error(
    name: str, arguments: tuple[tuple[str, Any], ...], data_type: DataType
) -> str | None:
    """Generate two elements, and return what is wrong with the arguments; None if nothing is."""
    try:
        of_data_type = ("value", "start", "low", "high")
        for key, value in arguments:
            finite = not isinstance(value, float) or math.isfinite(value)
            if data_type.dtype.kind != "f" and not finite and key not in of_data_type:
                raise ValueError(f"{key}: {data_type} cannot hold {value}")
        with np.errstate(invalid="ignore"):  # The values are checked below.
            fill(name, (2,), data_type, dict(arguments))
        for key, value in arguments:
            if key in of_data_type:
                tensor_values(value, (1,), data_type)
    except (TypeError, ValueError, OverflowError) as error:
        # The message names the function that generates the fill, then the argument.
        return str(error).partition("() ")[2] or str(error)
    return None


def expected_array(
    value: Any, tensor: TensorDesc, files: CaseFiles, where: Sequence[str | int]
) -> Array:
    """Return the array that a case expects for an output.

    Args:
        value: numbers, `{fill: ...}` or `{file: NAME.npy}`.

    Raises:
        CaseError: the value does not form the tensor, or the tensor has more than
            `MOST_DIMENSIONS` dimensions or `LARGEST_EXPECTED_ELEMENTS` elements.
    """
    _limit_dimensions(tensor.Sizes, where)
    if math.prod(tensor.Sizes) > LARGEST_EXPECTED_ELEMENTS:
        message = f"an expected tensor of {math.prod(tensor.Sizes):,} elements"
        raise CaseError(where, message, f"at most {LARGEST_EXPECTED_ELEMENTS:,}")
    if isinstance(value, Mapping) and set(value) == {"fill"}:
        expected_fill = _fill(value["fill"], tensor, (*where, "fill"))
        return fill(expected_fill.name, tensor.Sizes, tensor.DataType, expected_fill.arguments)
    return _values(value, tensor, files, where)


def _values(value: Any, tensor: TensorDesc, files: CaseFiles, where: Sequence[str | int]) -> Array:
    if isinstance(value, Mapping):
        if set(value) != {"file"}:
            raise CaseError(where, f"{value!r} is neither a list nor {{file: NAME.npy}}")
        return files.read(value["file"], tensor, (*where, "file"))
    try:
        return tensor_values(value, tensor.Sizes, tensor.DataType)
    except ValuesError as error:
        raise CaseError((*where, *error.where), error.message, error.hint) from error


def require_list(value: Any, where: Sequence[str | int]) -> None:
    """Raise `CaseError` for anything that is neither a list nor a tuple."""
    if not isinstance(value, list | tuple):
        raise CaseError(where, f"must be a list, not {value!r}")
