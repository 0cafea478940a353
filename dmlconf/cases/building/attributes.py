"""Read the attributes of a desc, set its count fields, and check the range of its scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dmlconf.cases.building.tensor_entry import require_list
from dmlconf.cases.building.values import ValuesError, require_fit, tensor_values
from dmlconf.cases.errors import CaseError, CaseErrors
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.documents.problems import name_hint
from dmlconf.tensors.datatypes import DataType

__all__ = ["array_length", "read_attribute", "require_scalars", "set_counts"]

_WHOLE: Final[Mapping[AttributeKind, DataType]] = {
    AttributeKind.UINT: DataType.UINT32,
    AttributeKind.INT: DataType.INT32,
}

_PARTS: Final[Mapping[AttributeKind, tuple[tuple[str, str], DataType]]] = {
    AttributeKind.SIZE_2D: (("Width", "Height"), DataType.UINT32),
    AttributeKind.SCALE_BIAS: (("Scale", "Bias"), DataType.FLOAT32),
}
"""The members of each attribute that is a struct, and their data type."""


def read_attribute(field: Field, value: Any, where: Sequence[str | int]) -> Any:
    """Return an attribute of a case file as it is in a desc.

    Arrays become tuples. A constant of an enum becomes its name without the prefix; an unknown
    number is kept. A nested operator becomes a mapping of its fields, with its name as `operator`.

    Raises:
        CaseError: the attribute cannot have this value.
    """
    if field.is_array:
        require_list(value, where)
        return tuple(_item(field, item, (*where, i)) for i, item in enumerate(value))
    return _item(field, value, where)


def array_length(
    count: str, desc: Desc, arrays: Sequence[str], where: Sequence[str | int] = ("desc",)
) -> int:
    """Return the value of a count field: the length of its arrays.

    If all arrays are absent, return the count that the case gives, or 0.

    Raises:
        CaseError: the arrays differ in length, or the count field has another value.
    """
    lengths = {name: len(desc[name]) for name in arrays if desc[name] is not None}
    if desc[count] is not None:
        lengths = {count: desc[count], **lengths}
    if len(set(lengths.values())) > 1:
        statements = ", ".join(f"{name} says {length}" for name, length in lengths.items())
        raise CaseError(
            (*where, count), f"lengths differ: {statements}", f"{count} may be left out"
        )
    return int(next(iter(lengths.values()), 0))


def set_counts(
    operator: Operator, desc: dict[str, Any], where: Sequence[str | int] = ("desc",)
) -> None:
    """Set each count field of a desc to what `array_length` returns.

    Raises:
        CaseError: as `array_length`.
    """
    for count, arrays in operator.count_fields.items():
        desc[count] = array_length(count, desc, arrays, where)


def _item(field: Field, value: Any, where: Sequence[str | int]) -> Any:
    kind = field.attribute_kind
    if kind is AttributeKind.ENUM:
        return _constant(field, value, where)
    if kind is AttributeKind.OPERATOR:
        return _nested(field, value, where)
    if kind in _WHOLE:
        if not isinstance(value, int):
            raise CaseError(where, f"must be a whole number, not {value!r}")
        _require_fit(value, _WHOLE[kind], where)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in (AttributeKind.FLOAT, AttributeKind.SCALAR_UNION) and not is_number:
        raise CaseError(where, f"must be a number, not {value!r}")
    if kind is AttributeKind.FLOAT:
        _require_fit(value, DataType.FLOAT32, where)
    if kind is AttributeKind.BOOL and not isinstance(value, bool):
        raise CaseError(where, f"must be true or false, not {value!r}")
    if kind in _PARTS:
        names, data_type = _PARTS[kind]
        if not isinstance(value, Mapping) or value.keys() != set(names):
            raise CaseError(where, f"must have {' and '.join(names)}, not {value!r}")
        for name, part in value.items():
            _require_fit(part, data_type, (*where, name))
    return value


def require_scalars(operator: Operator, desc: Desc, where: Sequence[str | int] = ("desc",)) -> None:
    """Raise `CaseError` for scalars that do not fit the data type that another field names.

    A scalar of a 4-bit type may have any value of the 8-bit type that stores it. In a field that
    `wraps`, a negative integer must fit the signed type of the same size: INT8 instead of UINT8.
    """
    errors = CaseErrors()
    for field in operator.fields:
        name = None if field.type_field is None else desc.get(field.type_field)
        # DirectML ignores a scalar whose data type is UNKNOWN.
        if name is not None and name in DataType.__members__ and desc[field.name] is not None:
            value = desc[field.name]
            negative = field.wraps and isinstance(value, int) and value < 0
            with errors.collected():
                stored = DataType(name).stored
                signed = DataType(stored.removeprefix("U") if negative else stored)
                _require_fit(value, signed, (*where, field.name))
    errors.raise_any()


def _require_fit(value: Any, data_type: DataType, where: Sequence[str | int]) -> None:
    try:
        if isinstance(value, int | float):
            require_fit(value, data_type)
        else:
            tensor_values(value, (1,), data_type)
    except ValuesError as error:
        raise CaseError(where, error.message, error.hint) from error


def _constant(field: Field, value: Any, where: Sequence[str | int]) -> Any:
    enumeration = catalogue.enumeration(field.base_type)
    if isinstance(value, int) and not isinstance(value, bool):
        by_value = {number: name for name, number in enumeration.values.items()}
        return by_value.get(value, value)
    short = str(value).removeprefix(enumeration.prefix)
    if short not in enumeration.values:
        hint = name_hint(short, enumeration.values)
        raise CaseError(where, f"{field.base_type} has no constant {value!r}", hint)
    return short


def _nested(field: Field, value: Any, where: Sequence[str | int]) -> Mapping[str, Any]:
    """Return a nested operator: its name as `operator`, and its fields by name.

    Its tensors are null, since the enclosing operator supplies the data.

    Source: the page "Using fused operators to improve performance".
    """
    if not isinstance(value, Mapping) or "operator" not in value:
        hint = f"such as {field.name}: {{operator: ACTIVATION_RELU}}"
        raise CaseError(where, f"must be an operator with its attributes, not {value!r}", hint)
    operator = _operator(value["operator"], (*where, "operator"))
    fields = {name: item for name, item in value.items() if name != "operator"}
    errors = CaseErrors()
    for name in fields.keys() - {field.name for field in operator.fields}:
        errors.add(_unknown(operator, name, where))
    desc: dict[str, Any] = {"operator": operator.name}
    for member in operator.fields:
        with errors.collected():
            desc[member.name] = _nested_field(operator, member, fields.get(member.name), where)
    errors.raise_any()
    set_counts(operator, desc, where)
    require_scalars(operator, desc, where)
    return desc


def _operator(name: Any, where: Sequence[str | int]) -> Operator:
    try:
        return catalogue.operator(str(name))
    except catalogue.UnknownOperatorError as error:
        raise CaseError(where, error.message, error.hint) from error


def _unknown(operator: Operator, name: str, where: Sequence[str | int]) -> CaseError:
    known = [field.name for field in operator.fields if not field.is_tensor]
    listed = f"known here: {', '.join(known)}" if known else f"{operator.name} has no attributes"
    hint = name_hint(name, known, listed, mark="`")
    return CaseError((*where, name), f"unknown field `{name}` in {operator.name}", hint)


def _nested_field(operator: Operator, field: Field, value: Any, where: Sequence[str | int]) -> Any:
    if field.is_tensor:
        if value is None:
            return None
        message = f"{field.name} of a nested operator must be null"
        raise CaseError((*where, field.name), message, f"leave {field.name} out")
    if value is not None:
        return read_attribute(field, value, (*where, field.name))
    if not field.optional and field.name not in operator.count_fields:
        hint = f"{operator.name} needs {field.name}"
        raise CaseError(where, f"`{field.name}` is missing", hint)
    return None
