"""The parameters of an operator, their possible values, and the values of a case.

Data types, ranks, layouts, attributes, memory and classes of data follow from the catalogue.
Families of operators add others, such as sizes (`spaces`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.loader import enumeration
from dmlconf.catalogue.model import AttributeKind, Entry, Field, FieldKind, Operator
from dmlconf.catalogue.support import data_types_of, ranks_of
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.coverage.combinations.classes import data_class, data_classes, data_input
from dmlconf.coverage.combinations.graph_facts import graph_facts
from dmlconf.coverage.combinations.partial_descs import CLASS, LAYOUT, Assignment, tied
from dmlconf.coverage.combinations.spaces import spaces_of
from dmlconf.coverage.nested import nested_of_case, nested_operators
from dmlconf.expressions import Namespace
from dmlconf.tensors.layout import layout_class

__all__ = ["ABSENT", "PRESENT", "Parameter", "parameters_of", "values_of"]

ABSENT: Final = "absent"
PRESENT: Final = "present"

_LAYOUTS: Final = ("packed", "padded", "transposed", "channels-last")
_CHANNELS: Final = 3
"""The fewest dimensions of a tensor with the layout `channels-last`."""

Read = Callable[[Case, Namespace], str | None]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operator.

    Attributes:
        name: such as `layout of OutputTensor`.
        values: the values whose pairs are counted, such as `padded`.
        read: returns the value of a case, which `values` may lack; None if the case has none.
        assigned: returns what a value says about a desc.
    """

    name: str
    values: tuple[str, ...]
    read: Read
    assigned: Callable[[str], tuple[Assignment, ...]] = lambda value: ()


@cache
def parameters_of(entry: Entry) -> tuple[Parameter, ...]:
    """Return the parameters with at least two values."""
    found = list(_family(entry))
    if isinstance(entry, Operator):
        found = [*_tensors(entry), *_attributes(entry), *_memory_and_data(entry), *found]
    return tuple(each for each in found if len(each.values) > 1)


def values_of(case: Case, parameters: tuple[Parameter, ...]) -> tuple[str | None, ...]:
    """Return the value of each parameter in a valid case."""
    names = _names(case)
    return tuple(each.read(case, names) for each in parameters)


def _names(case: Case) -> Namespace:
    if case.nodes:
        return graph_facts(case)
    operator = case.operator
    outputs = tensors_of(operator, case.desc, FieldKind.OUTPUT)
    inputs = tensors_of(operator, case.desc, FieldKind.INPUT)
    derived = {
        "Output": next((tensor for _, _, tensor in outputs), None),
        "Input": next((tensor for _, _, tensor in inputs), None),
    }
    return operator.names({**case.desc, **derived})


def _first(desc: Desc, name: str) -> TensorDesc | None:
    """Return the tensor of a field, the first tensor of an array, or None."""
    value = desc.get(name)
    if isinstance(value, tuple | list):
        value = value[0] if value else None
    return value if isinstance(value, TensorDesc) else None


def _first_of(desc: Desc, names: tuple[str, ...]) -> TensorDesc | None:
    return next((tensor for name in names if (tensor := _first(desc, name)) is not None), None)


def _tensors(operator: Operator) -> Iterator[Parameter]:
    fields = list(operator.of_kind(FieldKind.INPUT, FieldKind.OUTPUT))
    groups = tied(operator, "DataType")
    varied = [name for name in groups if len(data_types_of(operator, name)) > 1]
    for name, tensors in groups.items():
        types = data_types_of(operator, name)
        yield Parameter(
            f"data type of {name}" if len(varied) > 1 else "data type",
            tuple(str(each) for each in types),
            partial(_data_type, tensors),
            partial(_typed, tensors),
        )
    first = fields[0].name
    dimensions = tied(operator, "DimensionCount")[first]
    yield Parameter(
        "dimensions",
        tuple(str(rank) for rank in ranks_of(operator, first)),
        partial(_rank, dimensions),
        partial(_ranked, dimensions),
    )
    for field in fields:
        most = max(ranks_of(operator, field.name), default=1)
        layouts = _LAYOUTS[:2] if most < 2 else _LAYOUTS if most >= _CHANNELS else _LAYOUTS[:3]
        if field.kind is FieldKind.INPUT:
            layouts = (*layouts, "broadcast")
        yield Parameter(
            f"layout of {field.name}",
            layouts,
            partial(_layout, field.name),
            (lambda value: ()) if field.is_array else partial(_laid_out, field.name),
        )


def _data_type(tensors: tuple[str, ...], case: Case, names: Namespace) -> str | None:
    tensor = _first_of(case.desc, tensors)
    return None if tensor is None else str(tensor.DataType)


def _typed(tensors: tuple[str, ...], value: str) -> tuple[Assignment, ...]:
    return tuple(Assignment(name, "DataType", value) for name in tensors)


def _rank(tensors: tuple[str, ...], case: Case, names: Namespace) -> str | None:
    tensor = _first_of(case.desc, tensors)
    return None if tensor is None else str(tensor.DimensionCount)


def _ranked(tensors: tuple[str, ...], value: str) -> tuple[Assignment, ...]:
    return tuple(Assignment(name, "DimensionCount", int(value)) for name in tensors)


def _layout(name: str, case: Case, names: Namespace) -> str | None:
    tensor = _first(case.desc, name)
    return None if tensor is None else layout_class(tensor.Sizes, tensor.Strides)


def _laid_out(name: str, value: str) -> tuple[Assignment, ...]:
    return (Assignment(name, LAYOUT, value),)


def _attributes(operator: Operator) -> Iterator[Parameter]:
    for field in operator.fields:
        if field.is_tensor:
            if field.optional:
                yield _optional(field, (ABSENT, PRESENT))
            continue
        match field.attribute_kind:
            case AttributeKind.OPERATOR:
                yield from _nested(operator, field)
            case AttributeKind.BOOL:
                yield Parameter(
                    field.name,
                    ("false", "true"),
                    partial(_text, field.name),
                    partial(_flag, field.name),
                )
            case AttributeKind.ENUM if field.base_type != "DML_TENSOR_DATA_TYPE":
                values = tuple(enumeration(field.base_type).values)
                yield Parameter(
                    field.name, values, partial(_text, field.name), partial(_named, field.name)
                )
            case _ if field.optional:
                yield _optional(field, (ABSENT, PRESENT))


def _optional(field: Field, values: tuple[str, ...]) -> Parameter:
    return Parameter(
        field.name, values, partial(_presence, field.name), partial(_present, field.name)
    )


def _presence(name: str, case: Case, names: Namespace) -> str:
    return ABSENT if case.desc.get(name) is None else PRESENT


def _present(name: str, value: str) -> tuple[Assignment, ...]:
    return (Assignment(name, None, None if value == ABSENT else ...),)


def _text(name: str, case: Case, names: Namespace) -> str | None:
    value = case.desc.get(name)
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else None


def _flag(name: str, value: str) -> tuple[Assignment, ...]:
    return (Assignment(name, None, value == "true"),)


def _named(name: str, value: str) -> tuple[Assignment, ...]:
    return (Assignment(name, None, value),)


def _nested(operator: Operator, field: Field) -> Iterator[Parameter]:
    slots: dict[str, list[str]] = {}
    for each in nested_operators(operator):
        slot, _, name = each.rpartition(" ")
        if TensorRef.of(slot).field == field.name:
            slots.setdefault(slot, []).append(name)
    for slot, names in slots.items():
        absent = (ABSENT,) if field.optional else ()
        yield Parameter(
            slot,
            (*absent, *names),
            partial(_nested_name, slot),
            partial(_nested_named, field.name) if slot == field.name else lambda value: (),
        )


def _nested_name(slot: str, case: Case, names: Namespace) -> str | None:
    for each in nested_of_case(case.operator, case.desc):
        found, _, name = each.rpartition(" ")
        if found == slot:
            return name
    return ABSENT


def _nested_named(name: str, value: str) -> tuple[Assignment, ...]:
    if value == ABSENT:
        return (Assignment(name, None, None),)
    return (Assignment(name, "operator", value),)


def _memory_and_data(operator: Operator) -> Iterator[Parameter]:
    if any(operator.of_kind(FieldKind.INPUT)):
        yield Parameter("owned inputs", ("none", "some"), _owned)
    yield Parameter("base alignment", ("none", "guaranteed"), _alignment)
    if operator.in_place:
        yield Parameter("in place", ("false", "true"), _in_place)
    name = data_input(operator)
    if name is not None:
        types = data_types_of(operator, name)
        yield Parameter(
            "data",
            data_classes(types),
            lambda case, names: data_class(case),
            lambda value: _present(name, PRESENT),
        )


def _all_tensors(case: Case, *kinds: FieldKind) -> Iterator[TensorDesc]:
    return (tensor for _, _, tensor in tensors_of(case.operator, case.desc, *kinds))


def _owned(case: Case, names: Namespace) -> str:
    owned = any(each.Owned for each in _all_tensors(case, FieldKind.INPUT))
    return "some" if owned else "none"


def _alignment(case: Case, names: Namespace) -> str:
    tensors = _all_tensors(case, FieldKind.INPUT, FieldKind.OUTPUT)
    return "guaranteed" if any(each.GuaranteedBaseOffsetAlignment for each in tensors) else "none"


def _in_place(case: Case, names: Namespace) -> str:
    return "true" if case.in_place else "false"


def _family(entry: Entry) -> Iterator[Parameter]:
    for space in spaces_of(entry):
        for each in space.parameters:
            yield Parameter(
                each.name,
                tuple(each.classes),
                partial(_class, each.read),
                partial(_of_class, each.name) if isinstance(entry, Operator) else lambda value: (),
            )


def _of_class(name: str, value: str) -> tuple[Assignment, ...]:
    return (Assignment(name, CLASS, value),)


def _class(read: Callable[[Namespace], str | None], case: Case, names: Namespace) -> str | None:
    return read(names)
