"""Build the cases of operators; read expectations and change fills, for graphs too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dmlconf.cases.building.attributes import read_attribute, require_scalars, set_counts
from dmlconf.cases.building.files import CaseFiles
from dmlconf.cases.building.formulas import Fixed, evaluated, prepared
from dmlconf.cases.building.tensor_entry import expected_array, read_tensor, require_list
from dmlconf.cases.errors import CaseError, CaseErrors
from dmlconf.cases.model import (
    Case,
    CaseTemplate,
    ExpectedOutputs,
    ExpectedRejection,
    Fill,
    PlannedCase,
    Provenance,
)
from dmlconf.cases.tolerance import read_tolerances
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.constraints import constraint_names
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import Entry, Field, FieldKind, Operator
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.documents.problems import name_hint
from dmlconf.expressions import Budget, Namespace, namespace
from dmlconf.limits import MOST_CASE_STEPS
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.fills import challenged

__all__ = [
    "MOST_REPEATS",
    "build_operator_case",
    "challenged_data",
    "read_expectation",
]

MOST_REPEATS: Final = 1024
"""The most tensors that `{repeat: COUNT, of: ENTRY}` makes of one entry."""


def build_operator_case(planned: PlannedCase) -> Case:
    """Build the case of an operator.

    Raises:
        CaseError: the entry is not a valid case with these parameters.
    """
    template = planned.template
    entry = template.data
    operator = catalogue.operator(template.operator_name)
    written, names = _written(template), namespace(planned.parameters, Budget(MOST_CASE_STEPS))
    errors = CaseErrors()
    desc: Desc = {}
    data: _Data = {}
    files = CaseFiles(template.about.location.path.parent)
    try:
        for name, node in written["let"].items():
            names[name] = evaluated(node, names)
        desc, data = _desc(operator, written, names, files)
    except CaseError as error:
        errors.add(error)
    with errors.collected():
        _check_constraint(operator, entry.get("expect", {}).get("constraint"))
    errors.raise_any()
    expectation = read_expectation(
        operator, entry, evaluated(written["expect"], names), desc, files
    )
    if not isinstance(expectation, ExpectedRejection):
        _require_data(operator, desc, data)
    if template.challenge is not None and not template.keeps_data:
        data = challenged_data(data, template.challenge)
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
        tolerances=read_tolerances(entry.get("tolerance", {}), _outputs(operator, desc)),
        files=files.digests,
        disputes=entry.get("disputes"),
    )


@lru_cache(maxsize=64)  # Cases of one template follow each other.
def _written(template: CaseTemplate) -> Mapping[str, Any]:
    """Return the parts of an entry that may contain expressions, prepared for `evaluated`.

    Without a matrix there are no expressions. `known` is for `_known_field` to fill.
    """
    entry = template.data
    read = prepared if "matrix" in entry else lambda value, where: Fixed(value)
    return {
        "let": {name: read(value, ("let", name)) for name, value in entry.get("let", {}).items()},
        "desc": {name: read(value, ("desc", name)) for name, value in entry["desc"].items()},
        "expect": read(entry.get("expect"), ("expect",)),
        "known": {},
    }


_Data = dict[str, Array | Fill]


def challenged_data(data: _Data, challenge: int) -> _Data:
    """Return a case's data; `challenge`, a number, changes the seeds and shifts of its fills."""
    return {
        name: replace(part, arguments=challenged(part.name, part.arguments, challenge))
        if isinstance(part, Fill)
        else part
        for name, part in data.items()
    }


def _desc(
    operator: Operator, written: Mapping[str, Any], names: Namespace, files: CaseFiles
) -> tuple[Desc, _Data]:
    desc: dict[str, Any] = {}
    data: _Data = {}
    errors = CaseErrors()
    for field in operator.fields:
        node = written["desc"].get(field.name, _ABSENT)
        read = _known_field if type(node) is Fixed else _field
        try:
            desc[field.name] = read(field, node, names, data, files, written["known"])
        except CaseError as error:
            errors.add(error)
    errors.raise_any()
    set_counts(operator, desc)
    require_scalars(operator, desc)
    return desc, data


_Known = dict[str, tuple[Any, _Data]]
"""Values of the fields without expressions, each with the data of its tensors."""


def _known_field(
    field: Field, node: Any, names: Namespace, data: _Data, files: CaseFiles, known: _Known
) -> Any:
    """Return the value of a field without expressions, read once for all cases of its template.

    A field that names files is read for each case, which needs the files' digests.
    """
    if field.name not in known:
        own: _Data = {}
        reads_before = files.reads
        value = _field(field, node, names, own, files, known)
        if files.reads > reads_before:
            data.update(own)
            return value
        for part in own.values():
            if isinstance(part, np.ndarray):
                part.flags.writeable = False  # Several cases share the array.
        known[field.name] = value, own
    value, own = known[field.name]
    data.update(own)
    return value


def _field(
    field: Field, node: Any, names: Namespace, data: _Data, files: CaseFiles, known: _Known
) -> Any:
    where = ("desc", field.name)
    if field.is_tensor and field.is_array:
        items = _items(node, names, where)
        return items and tuple(
            read_tensor(item, str(TensorRef(field.name, index)), data, files, (*where, index))
            for index, item in enumerate(items)
        )
    value = evaluated(node, names)
    if value is None:
        return None
    if field.is_tensor:
        return read_tensor(value, field.name, data, files, where)
    return read_attribute(field, value, where)


_ABSENT: Final = Fixed(None)


def _items(node: Any, names: Namespace, where: tuple[str | int, ...]) -> Any:
    """Return the entries of an array's tensors; `{repeat: 3, of: ENTRY}` gives three."""
    parts = node.value if isinstance(node, Fixed) else node
    if not isinstance(parts, Mapping):
        items = evaluated(node, names)
        if items is not None:
            require_list(items, where)
        return items
    repeat = _part(node, "repeat", names)
    if not isinstance(repeat, int) or not 0 <= repeat <= MOST_REPEATS:
        raise CaseError((*where, "repeat"), f"{repeat!r} is not a number from 0 to {MOST_REPEATS}")
    return [_part(node, "of", {**names, "Index": index}) for index in range(repeat)]


def _part(node: Any, key: str, names: Namespace) -> Any:
    return node.value[key] if isinstance(node, Fixed) else evaluated(node[key], names)


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


def _outputs(entry: Entry, desc: Desc) -> dict[str, TensorDesc]:
    return {name: tensor for name, _, tensor in tensors_of(entry, desc, FieldKind.OUTPUT)}


def read_expectation(
    catalogue_entry: Entry,
    entry: Mapping[str, Any],
    expect: Mapping[str, Any] | None,
    desc: Desc,
    files: CaseFiles,
) -> ExpectedOutputs | ExpectedRejection | None:
    """Return the outputs or the rejection that a case expects; None if it does not say.

    Args:
        catalogue_entry: the operator, or a graph's entry as `graph_entry` returns it.
        expect: the entry's `expect` with its expressions evaluated. Its outputs are fields of
            `catalogue_entry`.

    Raises:
        CaseError: the values do not form the outputs, the desc has no such output, or `origin` is
            given without `expect`.
    """
    if expect is None:
        if "origin" in entry:
            message = "`origin` says where the expected values are from, and there are none"
            raise CaseError(("origin",), message, "give the case `expect`, or say it in its `note`")
        return None
    provenance = _provenance(entry)
    if "rejected" in expect:
        return ExpectedRejection(expect["rejected"], expect.get("constraint"), provenance)
    tensors = _outputs(catalogue_entry, desc)
    outputs = {}
    errors = CaseErrors()
    for name, value in expect.items():
        where = ("expect", name)
        for target, item, of_item in _expected_tensors(catalogue_entry.field(name), value, where):
            with errors.collected():
                if target not in tensors:
                    raise CaseError(of_item, f"the desc has no output {target}")
                outputs[target] = expected_array(item, tensors[target], files, of_item)
    errors.raise_any()
    return ExpectedOutputs(outputs, provenance)


def _provenance(entry: Mapping[str, Any]) -> Provenance:
    if "recorded" in entry:
        return Provenance.RECORDED
    return Provenance.STATED if "origin" in entry else Provenance.DOCUMENTED


def _expected_tensors(
    field: Field, value: Any, where: tuple[str | int, ...]
) -> list[tuple[str, Any, tuple[str | int, ...]]]:
    if not field.is_array:
        return [(field.name, value, where)]
    require_list(value, where)
    return [
        (str(TensorRef(field.name, index)), item, (*where, index))
        for index, item in enumerate(value)
    ]


def _check_constraint(operator: Operator, constraint: str | None) -> None:
    if constraint is None:
        return
    known = constraint_names(operator)
    if constraint not in known:
        hint = name_hint(constraint, sorted(known))
        message = f"{operator.name} has no constraint {constraint!r}"
        raise CaseError(("expect", "constraint"), message, hint)
