"""Build a case from its entry in a file and its place in the matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from dmlconf.cases.model import (
    Case,
    ExpectedOutputs,
    ExpectedRejection,
    Fill,
    PlannedCase,
    Provenance,
)
from dmlconf.cases.values import ValuesError, tensor_values
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.constraints import constraint_names
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator
from dmlconf.documents.problems import nearest
from dmlconf.expressions import Expression, ExpressionError, Namespace, namespace
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.fills import FILLS, fill
from dmlconf.tensors.layout import LAYOUTS, as_stored

__all__ = ["LARGEST_TENSOR_ELEMENTS", "CaseError", "build", "parameter_names"]

LARGEST_TENSOR_ELEMENTS: Final = 1 << 26

MOST_REPEATS: Final = 1024

_FLAG_PREFIX: Final = "DML_TENSOR_FLAG_"
_TYPE_PREFIX: Final = "DML_TENSOR_DATA_TYPE_"

# The fills whose arguments are all whole numbers.
_WHOLE: Final = frozenset({"integers", "sequence"})


class CaseError(ValueError):
    """A case that cannot be built.

    Attributes:
        where: keys and indices that lead to the fault, from the case's entry.
        message: what was found and expected.
        hint: what to do, or None.
    """

    def __init__(self, where: Sequence[str | int], message: str, hint: str | None = None) -> None:
        self.where, self.message, self.hint = tuple(where), message, hint
        super().__init__(message)


def parameter_names(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names that the expressions of a case's entry may use."""
    return (*entry.get("matrix", ()), *entry.get("let", ()))


def build(planned: PlannedCase) -> Case:
    """Return the case.

    Raises:
        CaseError: the entry does not make a case with these parameters.
    """
    template = planned.template
    entry = template.data
    operator = catalogue.operator(template.operator_name)
    read = _Reader(_names(entry, planned.parameters) if "matrix" in entry else None)
    desc, data = _desc(operator, entry["desc"], read)
    expectation = _expectation(operator, entry, desc, read)
    if not isinstance(expectation, ExpectedRejection):
        _require_data(operator, desc, data)
    in_place = entry.get("in_place", {})
    _check_in_place(operator, in_place)
    return Case(
        identifier=planned.identifier,
        operator_name=template.operator_name,
        desc=desc,
        data=data,
        expectation=expectation,
        tags=template.tags,
        about=template.about,
        in_place=in_place,
    )


def _names(entry: Mapping[str, Any], parameters: Mapping[str, Any]) -> Namespace:
    names = namespace(parameters)
    for name, source in entry.get("let", {}).items():
        names[name] = _evaluated(source, names, ("let", name))
    return names


def _evaluated(value: Any, names: Namespace, where: Sequence[str | int]) -> Any:
    if not isinstance(value, str) or not value.startswith("="):
        return value
    try:
        return Expression(value[1:]).evaluate(names)
    except ExpressionError as error:
        raise CaseError(where, str(error)) from error


class _Reader:
    """Reads values of an entry; in a matrix case they may be expressions."""

    def __init__(self, names: Namespace | None) -> None:
        self._names = names

    def knowing(self, name: str, value: Any) -> _Reader:
        """Return a reader whose expressions know one more name."""
        return _Reader({**(self._names or {}), name: value})

    def __call__(self, value: Any, where: Sequence[str | int]) -> Any:
        """Return the value, with expressions in it replaced by what they give."""
        if self._names is None:
            return value
        if isinstance(value, list):
            return [self(item, (*where, index)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self(item, (*where, key)) for key, item in value.items()}
        return _evaluated(value, self._names, where)


_Data = dict[str, Array | Fill]


def _desc(operator: Operator, written: Mapping[str, Any], read: _Reader) -> tuple[Desc, _Data]:
    desc: dict[str, Any] = {}
    data: _Data = {}
    for field in operator.fields:
        where = ("desc", field.name)
        value = written.get(field.name)
        if value is None:
            desc[field.name] = None
        elif not field.is_tensor:
            desc[field.name] = _attribute(field, read(value, where), where)
        elif field.is_array:
            items = _items(value, read, where)
            desc[field.name] = tuple(
                _tensor(item, f"{field.name}[{index}]", data, (*where, index))
                for index, item in enumerate(items)
            )
        else:
            desc[field.name] = _tensor(read(value, where), field.name, data, where)
    for count, arrays in operator.count_fields.items():
        desc[count] = _count(count, desc, arrays)
    return desc, data


def _items(value: Any, read: _Reader, where: tuple[str | int, ...]) -> list[Any]:
    """Return the tensors of an array; `repeat` and `of` stand for many alike."""
    if not isinstance(value, Mapping):
        items = read(value, where)
        _require_list(items, where)
        return list(items)
    repeat = read(value["repeat"], (*where, "repeat"))
    if not isinstance(repeat, int) or not 0 <= repeat <= MOST_REPEATS:
        raise CaseError((*where, "repeat"), f"{repeat!r} is not a number from 0 to {MOST_REPEATS}")
    return [read.knowing("Index", i)(value["of"], (*where, "of")) for i in range(repeat)]


def _count(count: str, desc: Desc, arrays: Sequence[str]) -> int:
    """Return the length that the arrays of a count field share."""
    lengths = {name: len(desc[name]) for name in arrays if desc[name] is not None}
    if desc[count] is not None:
        lengths = {count: desc[count], **lengths}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} says {length}" for name, length in lengths.items())
        hint = f"{count} may be left out"
        raise CaseError(("desc", count), f"lengths differ: {told}", hint)
    return int(next(iter(lengths.values()), 0))


def _require_list(value: Any, where: Sequence[str | int]) -> None:
    if not isinstance(value, list | tuple):
        raise CaseError(where, f"must be a list, not {value!r}")


def _attribute(field: Field, value: Any, where: Sequence[str | int]) -> Any:
    if field.is_array:
        _require_list(value, where)
        return tuple(_attribute_item(field, item, (*where, i)) for i, item in enumerate(value))
    return _attribute_item(field, value, where)


def _attribute_item(field: Field, value: Any, where: Sequence[str | int]) -> Any:
    kind = field.attribute_kind
    if kind is AttributeKind.ENUM:
        enumeration = catalogue.enumeration(field.base_type)
        if isinstance(value, int):
            by_value = {number: name for name, number in enumeration.values.items()}
            return by_value.get(value, value)
        short = str(value).removeprefix(enumeration.prefix)
        if short not in enumeration.values:
            raise CaseError(where, f"{field.base_type} has no constant {value!r}")
        return short
    if kind in (AttributeKind.UINT, AttributeKind.INT) and not isinstance(value, int):
        raise CaseError(where, f"must be a whole number, not {value!r}")
    return value


def _tensor(
    written: Mapping[str, Any], name: str, data: _Data, where: Sequence[str | int]
) -> TensorDesc:
    if not isinstance(written, Mapping):
        raise CaseError(where, f"must be a tensor, not {written!r}")
    sizes = _whole_numbers(written["Sizes"], (*where, "Sizes"))
    if "DimensionCount" in written and written["DimensionCount"] != len(sizes):
        message = f"DimensionCount is {written['DimensionCount']}, but Sizes has {len(sizes)}"
        raise CaseError((*where, "DimensionCount"), message, "leave DimensionCount out")
    tensor = TensorDesc(
        DataType=_data_type(written["DataType"], (*where, "DataType")),
        Sizes=sizes,
        Strides=_strides(written, sizes, where),
        Flags=_flags(written.get("Flags", ()), (*where, "Flags")),
        DeclaredTensorSizeInBytes=_bytes(written, "TotalTensorSizeInBytes", None, where),
        GuaranteedBaseOffsetAlignment=_bytes(written, "GuaranteedBaseOffsetAlignment", 0, where),
    )
    if "values" in written or "fill" in written:
        if math.prod(sizes) > LARGEST_TENSOR_ELEMENTS:
            message = f"a tensor of {math.prod(sizes):,} elements"
            raise CaseError((*where, "Sizes"), message, f"at most {LARGEST_TENSOR_ELEMENTS:,}")
        data[name] = _tensor_data(written, tensor, where)
    return tensor


_Bytes = TypeVar("_Bytes", int, int | None)


def _bytes(
    written: Mapping[str, Any], name: str, default: _Bytes, where: Sequence[str | int]
) -> int | _Bytes:
    """Return a number of bytes of a tensor's entry."""
    if name not in written:
        return default
    value = written[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise CaseError((*where, name), f"{value!r} is not a whole number from 0 on")
    return value


def _whole_numbers(value: Any, where: Sequence[str | int]) -> tuple[int, ...]:
    _require_list(value, where)
    for index, number in enumerate(value):
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise CaseError((*where, index), f"{number!r} is not a whole number from 0 on")
    return tuple(value)


def _data_type(value: Any, where: Sequence[str | int]) -> DataType:
    name = str(value).removeprefix(_TYPE_PREFIX)
    try:
        return DataType(name)
    except ValueError:
        near = nearest(name, DataType)
        hint = f"did you mean {near}?" if near else f"one of {', '.join(DataType)}"
        raise CaseError(where, f"{value!r} is not a data type", hint) from None


def _strides(
    written: Mapping[str, Any], sizes: tuple[int, ...], where: Sequence[str | int]
) -> tuple[int, ...] | None:
    layout = written.get("layout")
    given = written.get("Strides")
    if layout is None:
        return None if given is None else _whole_numbers(given, (*where, "Strides"))
    if given is not None:
        message = "`layout` and `Strides` both say where the elements lie"
        raise CaseError((*where, "layout"), message, "keep one of them")
    if layout not in LAYOUTS:
        near = nearest(str(layout), LAYOUTS)
        hint = f"did you mean {near}?" if near else f"one of {', '.join(LAYOUTS)}"
        raise CaseError((*where, "layout"), f"{layout!r} is not a layout", hint)
    return LAYOUTS[layout](sizes)


def _flags(value: Any, where: Sequence[str | int]) -> tuple[str, ...]:
    known = catalogue.enumeration("DML_TENSOR_FLAGS").values
    flags = [value] if isinstance(value, str) else list(value)
    names = tuple(str(flag).removeprefix(_FLAG_PREFIX) for flag in flags)
    for name in names:
        if name not in known:
            raise CaseError(where, f"{name!r} is not a flag", f"one of {', '.join(known)}")
    return tuple(name for name in names if name != "NONE")


def _tensor_data(
    written: Mapping[str, Any], tensor: TensorDesc, where: Sequence[str | int]
) -> Array | Fill:
    if "fill" in written:
        return _fill(written["fill"], tensor, (*where, "fill"))
    where = (*where, "values")
    try:
        array = tensor_values(written["values"], tensor.Sizes, tensor.DataType)
    except ValuesError as error:
        raise CaseError((*where, *error.where), error.message, error.hint) from error
    strides = tensor.Strides
    if strides is not None and len(strides) == array.ndim:
        same = as_stored(array, strides) == array
        if not (same | (array != array)).all():
            message = "elements that share a place in the buffer, by Strides, have other values"
            raise CaseError(where, message, "give equal values along a stride of 0")
    return array


def _fill(written: Any, tensor: TensorDesc, where: Sequence[str | int]) -> Fill:
    parts = {written: {}} if isinstance(written, str) else written
    if len(parts) != 1:
        raise CaseError(where, "a fill has one name", f"one of {', '.join(FILLS)}")
    name, arguments = next(iter(parts.items()))
    if name not in FILLS:
        near = nearest(str(name), FILLS)
        hint = f"did you mean {near}?" if near else f"one of {', '.join(FILLS)}"
        raise CaseError(where, f"there is no fill {name!r}", hint)
    arguments = arguments or {}
    if not isinstance(arguments, Mapping) or not all(
        isinstance(value, int | float) for value in arguments.values()
    ):
        raise CaseError(where, f"fill {name}: its arguments are numbers by name")
    for key, value in arguments.items():
        if (name in _WHOLE or key == "seed") and not isinstance(value, int):
            message = f"fill {name}: {key} is {value}, yet must be a whole number"
            raise CaseError((*where, name, key), message)
    fault = _fill_fault(name, tuple(arguments.items()), tensor.DataType)
    if fault:
        raise CaseError(where, f"fill {name}: {fault}")
    return Fill(name, arguments)


@lru_cache(maxsize=1024)
def _fill_fault(
    name: str, arguments: tuple[tuple[str, Any], ...], data_type: DataType
) -> str | None:
    """Make two elements, so that arguments that do not fit are seen before the case runs."""
    try:
        fill(name, (2,), data_type, dict(arguments))
        for key, value in arguments:
            if key in ("value", "start", "low", "high"):
                tensor_values(value, (1,), data_type)
    except (TypeError, ValueError, OverflowError) as error:
        # The message names the function that makes the fill; what follows names the argument.
        return str(error).partition("() ")[2] or str(error)
    return None


def _require_data(operator: Operator, desc: Desc, data: _Data) -> None:
    for name, field, _ in tensors_of(operator, desc, FieldKind.INPUT):
        if name not in data:
            where: list[str | int] = ["desc", field.name]
            if name != field.name:
                where.append(int(name[len(field.name) + 1 : -1]))
            raise CaseError(where, f"`{name}` has no data", "give it `values` or a `fill`")


def _check_in_place(operator: Operator, in_place: Mapping[str, str]) -> None:
    permitted = {(pair.output, pair.input) for pair in operator.in_place}
    for output, source in in_place.items():
        if (output, source) not in permitted:
            message = f"{operator.name} may not write {output} in place of {source}"
            raise CaseError(("in_place", output), message)


def _expectation(
    operator: Operator, entry: Mapping[str, Any], desc: Desc, read: _Reader
) -> ExpectedOutputs | ExpectedRejection | None:
    expect = entry.get("expect")
    if expect is None:
        return None
    provenance = Provenance.RECORDED if "recorded" in entry else Provenance.DOCUMENTED
    expect = read(expect, ("expect",))
    if "rejected" in expect:
        constraint = expect.get("constraint")
        _check_constraint(operator, constraint)
        return ExpectedRejection(expect["rejected"], constraint, provenance)
    tensors = {name: t for name, _, t in tensors_of(operator, desc, FieldKind.OUTPUT)}
    outputs = {}
    for name, value in expect.items():
        where = ("expect", name)
        for target, item, place in _expected_tensors(operator.field(name), value, where):
            if target not in tensors:
                raise CaseError(place, f"the desc has no output {target}")
            outputs[target] = _expected_array(item, tensors[target], place)
    return ExpectedOutputs(outputs, provenance)


def _expected_tensors(
    field: Field, value: Any, where: tuple[str | int, ...]
) -> list[tuple[str, Any, tuple[str | int, ...]]]:
    if not field.is_array:
        return [(field.name, value, where)]
    _require_list(value, where)
    return [(f"{field.name}[{index}]", item, (*where, index)) for index, item in enumerate(value)]


def _expected_array(value: Any, tensor: TensorDesc, where: tuple[str | int, ...]) -> Array:
    if isinstance(value, Mapping) and set(value) == {"fill"}:
        made = _fill(value["fill"], tensor, (*where, "fill"))
        return fill(made.name, tensor.Sizes, tensor.DataType, made.arguments)
    values = list(value) if isinstance(value, tuple) else value
    try:
        return tensor_values(values, tensor.Sizes, tensor.DataType)
    except ValuesError as error:
        raise CaseError((*where, *error.where), error.message, error.hint) from error


def _check_constraint(operator: Operator, constraint: str | None) -> None:
    if constraint is None:
        return
    known = constraint_names(operator)
    if constraint not in known:
        near = nearest(constraint, known)
        hint = f"did you mean {near}?" if near else f"one of {', '.join(sorted(known))}"
        message = f"{operator.name} has no constraint {constraint!r}"
        raise CaseError(("expect", "constraint"), message, hint)
