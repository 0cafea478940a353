"""Build a case from its entry in a file and its place in the matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dmlconf.cases.errors import CaseError, Faults
from dmlconf.cases.model import (
    Case,
    ExpectedOutputs,
    ExpectedRejection,
    Fill,
    PlannedCase,
    Provenance,
)
from dmlconf.cases.tensor_entry import expected_array, read_tensor, require_list
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.constraints import constraint_names
from dmlconf.catalogue.desc import Desc, tensors_of
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator
from dmlconf.documents.problems import nearest
from dmlconf.expressions import Expression, ExpressionError, Namespace, namespace
from dmlconf.tensors.datatypes import Array

__all__ = ["MOST_REPEATS", "build", "parameter_names"]

MOST_REPEATS: Final = 1024


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
    faults = Faults()
    desc: Desc = {}
    data: _Data = {}
    with faults.collected():
        desc, data = _desc(operator, entry["desc"], read)
    with faults.collected():
        _check_constraint(operator, entry.get("expect", {}).get("constraint"))
    faults.raise_any()
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
    faults = Faults()
    for field in operator.fields:
        desc[field.name] = None
        if written.get(field.name) is not None:
            with faults.collected():
                desc[field.name] = _field(field, written[field.name], read, data)
    faults.raise_any()
    for count, arrays in operator.count_fields.items():
        desc[count] = _count(count, desc, arrays)
    return desc, data


def _field(field: Field, written: Any, read: _Reader, data: _Data) -> Any:
    where = ("desc", field.name)
    if not field.is_tensor:
        return _attribute(field, read(written, where), where)
    if not field.is_array:
        return read_tensor(read(written, where), field.name, data, where)
    return tuple(
        read_tensor(item, f"{field.name}[{index}]", data, (*where, index))
        for index, item in enumerate(_items(written, read, where))
    )


def _items(value: Any, read: _Reader, where: tuple[str | int, ...]) -> list[Any]:
    """Return the tensors of an array; `repeat` and `of` stand for many alike."""
    if not isinstance(value, Mapping):
        items = read(value, where)
        require_list(items, where)
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


def _attribute(field: Field, value: Any, where: Sequence[str | int]) -> Any:
    if field.is_array:
        require_list(value, where)
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
        return ExpectedRejection(expect["rejected"], expect.get("constraint"), provenance)
    tensors = {name: t for name, _, t in tensors_of(operator, desc, FieldKind.OUTPUT)}
    outputs = {}
    faults = Faults()
    for name, value in expect.items():
        where = ("expect", name)
        for target, item, place in _expected_tensors(operator.field(name), value, where):
            with faults.collected():
                if target not in tensors:
                    raise CaseError(place, f"the desc has no output {target}")
                outputs[target] = expected_array(item, tensors[target], place)
    faults.raise_any()
    return ExpectedOutputs(outputs, provenance)


def _expected_tensors(
    field: Field, value: Any, where: tuple[str | int, ...]
) -> list[tuple[str, Any, tuple[str | int, ...]]]:
    if not field.is_array:
        return [(field.name, value, where)]
    require_list(value, where)
    return [(f"{field.name}[{index}]", item, (*where, index)) for index, item in enumerate(value)]


def _check_constraint(operator: Operator, constraint: str | None) -> None:
    if constraint is None:
        return
    known = constraint_names(operator)
    if constraint not in known:
        near = nearest(constraint, known)
        hint = f"did you mean {near}?" if near else f"one of {', '.join(sorted(known))}"
        message = f"{operator.name} has no constraint {constraint!r}"
        raise CaseError(("expect", "constraint"), message, hint)
