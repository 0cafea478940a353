"""Load the catalogue: `schemas/operators/*.yaml`, each file on first use, and `common.yaml`.

The common file has enums, shared constraints, constraints on all tensors, and sets of operators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dmlconf.catalogue.bounds import Bounds
from dmlconf.catalogue.graph import GRAPHS, graph_entry, is_graphs
from dmlconf.catalogue.model import (
    Constraint,
    Entry,
    Enumeration,
    FeatureLevel,
    Field,
    FieldKind,
    Gap,
    InPlace,
    LevelRequirement,
    Operator,
    PageError,
    Specialisation,
    Support,
    SupportTable,
)
from dmlconf.catalogue.precision import DEFAULT_FLUSHED, PrecisionEntry, RuleKind, Typical
from dmlconf.documents.problems import nearest
from dmlconf.documents.reader import read_document
from dmlconf.expressions import Expression
from dmlconf.resources import schemas_directory
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "PREFIXES",
    "UnknownOperatorError",
    "case_folders",
    "catalogue_digest",
    "entry_of",
    "enumeration",
    "family_of",
    "is_page",
    "is_shared",
    "operator",
    "operator_data",
    "operator_files",
    "operator_from",
    "operator_name",
    "operator_names",
    "operator_sets",
    "shared_constraint",
    "tensor_constraints",
]


PREFIXES: Final = ("ELEMENT_WISE_", "ACTIVATION_")
"""Beginnings of operators' names that people leave out."""

_LONGEST_NAME: Final = 100


class UnknownOperatorError(LookupError):
    """The catalogue has no operator of this name; `hint` names the nearest, or how to list all."""

    def __init__(self, name: str, others: Iterable[str] = ()) -> None:
        """Take the name, and names outside the catalogue that may have been meant."""
        self.name = name
        self.message = f"the catalogue has no operator {name}"
        near = _with_prefix(name) or nearest(name, operator_names()) or nearest(name, others)
        self.hint = f"did you mean {near}?" if near else "`dmlconf operators` lists all"
        super().__init__(f"{self.message}; {self.hint}")


def _with_prefix(name: str) -> str | None:
    """Return ACTIVATION_RELU for `relu`, for example; None if no prefix makes a known name."""
    names = set(operator_names())
    return next((full for prefix in PREFIXES if (full := prefix + name.upper()) in names), None)


def family_of(entry: Operator) -> str:
    """Return the module of the reference that computes an operator or a special case."""
    while entry.specialises is not None:
        entry = operator(entry.specialises.operator)
    return str(entry.family)


@cache
def operator_files() -> tuple[Path, ...]:
    """Return the catalogue's operator files, sorted by name."""
    return tuple(sorted((schemas_directory() / "operators").glob("*.yaml")))


def operator_names() -> list[str]:
    """Return the names of all operators, without their aliases, sorted."""
    return sorted(path.stem.upper() for path in operator_files())


def case_folders() -> list[str]:
    """Return the names of the folders of cases, in capitals: all operators, and `GRAPHS`."""
    return sorted([*operator_names(), GRAPHS])


def operator(name: str) -> Operator:
    """Return an operator by name or alias, in upper or lower case, with or without `DML_OPERATOR_`.

    Raises:
        UnknownOperatorError: the catalogue has no such operator, or the name is that of graphs.
        InvalidFilesError: a file of the catalogue cannot be read.
    """
    return _operator(operator_name(name))


def entry_of(name: str) -> Entry:
    """Return the entry of an operator, or the one that all graphs share."""
    return graph_entry() if is_graphs(name) else operator(name)


@cache
def operator_name(name: str) -> str:
    """Return the catalogue's name for a name or alias: `TILE` for `DML_OPERATOR_TILE`.

    `GRAPHS` stands for graphs.

    Raises:
        UnknownOperatorError: the catalogue has no such operator.
        InvalidFilesError: a file of the catalogue cannot be read.
    """
    upper_name = name.upper().removeprefix("DML_OPERATOR_")
    if is_graphs(upper_name):
        return GRAPHS
    if len(upper_name) > _LONGEST_NAME:
        raise UnknownOperatorError(name)
    if upper_name in _own_names():
        return upper_name
    for other in operator_files():
        if upper_name in other.read_text("utf-8"):
            entry = _operator(other.stem.upper())
            if upper_name in entry.aliases:
                return entry.name
    raise UnknownOperatorError(name)


@cache
def _own_names() -> frozenset[str]:
    return frozenset(operator_names())


@cache
def _operator(name: str) -> Operator:
    if name not in _own_names():
        raise UnknownOperatorError(name)
    return operator_from(read_document(_operator_file(name)).data)


def _operator_file(name: str) -> Path:
    return schemas_directory() / "operators" / f"{name.lower()}.yaml"


def operator_data(name: str) -> Mapping[str, Any]:
    """Return the content of an operator's file, in the form of operator.schema.json.

    Raises:
        UnknownOperatorError: the catalogue has no such operator.
        InvalidFilesError: a file cannot be read, or the name is that of graphs.
    """
    data: Mapping[str, Any] = read_document(_operator_file(operator_name(name))).data
    return data


def operator_from(data: Mapping[str, Any]) -> Operator:
    """Build an operator from the content of its file, which must fit the schema."""
    return Operator(
        name=data["operator"],
        aliases=tuple(data.get("aliases", ())),
        type_value=data["type"],
        struct=data["struct"],
        since=FeatureLevel.parse(data["since"]),
        page=data["page"],
        family=data.get("family"),
        summary=data["summary"],
        fields=tuple(_field(field) for field in data["fields"]),
        support=tuple(_support_table(table) for table in data["support"]),
        undocumented_data_types=MappingProxyType(
            {
                tensor: tuple(map(DataType, data_types))
                for tensor, data_types in data.get("undocumented_data_types", {}).items()
            }
        ),
        terms=MappingProxyType(
            {name: Expression(term) for name, term in data.get("terms", {}).items()}
        ),
        constraints=tuple(_constraints(data)),
        in_place=tuple(InPlace(**pair) for pair in data.get("in_place", ())),
        precision=MappingProxyType(
            {output: _precision(rules) for output, rules in data["precision"].items()}
        ),
        page_errors=tuple(PageError(**error) for error in data.get("page_errors", ())),
        examples=data.get("examples", 0),
        gaps=tuple(map(_gap, data.get("gaps", ()))),
        level_requirements=tuple(map(_level_requirement, data.get("level_requirements", ()))),
        specialises=_specialisation(data["specialises"]) if "specialises" in data else None,
    )


def _specialisation(data: Mapping[str, Any]) -> Specialisation:
    computed = {name: Expression(text) for name, text in data.get("computed", {}).items()}
    return Specialisation(
        data["operator"],
        MappingProxyType(dict(data.get("with", {}))),
        MappingProxyType(computed),
        data.get("differs"),
    )


def _level_requirement(data: Mapping[str, Any]) -> LevelRequirement:
    since, when = FeatureLevel.parse(data["since"]), Expression(data["when"])
    return LevelRequirement(**{**data, "since": since, "when": when})


def _gap(data: Mapping[str, Any]) -> Gap:
    since = FeatureLevel.parse(data["since"]) if "since" in data else None
    lowest, highest = data["ranks"]
    return Gap(data["tensor"], (lowest, highest), data["reason"], since)


def _field(data: Mapping[str, Any]) -> Field:
    read = {**data, "kind": FieldKind(data["kind"])}
    if "bounds" in data:
        read["bounds"] = Bounds(**{**data["bounds"], "high": Expression(data["bounds"]["high"])})
    return Field(**read)


def _support_table(data: Mapping[str, Any]) -> SupportTable:
    tensors: dict[str, Support] = {}
    for name, support in data["tensors"].items():
        if "like" in support:
            tensors[name] = tensors[support["like"]]
        else:
            lowest, highest = support["ranks"]
            tensors[name] = Support((lowest, highest), tuple(map(DataType, support["data_types"])))
    when = Expression(data["when"]) if "when" in data else None
    return SupportTable(FeatureLevel.parse(data["since"]), MappingProxyType(tensors), when)


def _constraints(data: Mapping[str, Any]) -> Iterator[Constraint]:
    fields = {field["name"] for field in data["fields"]}
    for constraint in data["constraints"]:
        if is_shared(constraint):
            yield shared_constraint(constraint, fields)
        else:
            yield _constraint(constraint)


def is_shared(constraint: str | Mapping[str, Any]) -> bool:
    """Return whether a constraint that an operator lists is one of `schemas/common.yaml`."""
    return isinstance(constraint, str) or "name" not in constraint


def shared_constraint(
    listed: str | Mapping[str, Sequence[str]], fields: Collection[str]
) -> Constraint:
    """Return a constraint of `schemas/common.yaml` as one operator uses it.

    `listed` is the constraint's name, perhaps with the tensors that it compares:
    `same-sizes: [InputTensor, OutputTensor]` becomes `InputTensor.Sizes == OutputTensor.Sizes`.

    Raises:
        LookupError: there is no such constraint, tensors are missing or superfluous, or the
            operator lacks a field that the constraint needs.
    """
    name, tensors = (listed, ()) if isinstance(listed, str) else next(iter(listed.items()))
    definitions = {entry["name"]: entry for entry in _common()["shared_constraints"]}
    if name not in definitions:
        near = nearest(name, definitions)
        hint = f"; did you mean {near}?" if near else ""
        raise LookupError(f"common.yaml has no shared constraint {name}{hint}")
    definition = dict(definitions[name])
    same = definition.pop("same", None)
    if same is not None and not tensors:
        raise LookupError(f"{name} needs the tensors that it compares: {name}: [ATensor, BTensor]")
    if same is None and tensors:
        raise LookupError(f"{name} compares no tensors; list it by its name alone")
    if same is not None:
        definition["require"] = " == ".join(f"{tensor}.{same}" for tensor in tensors)
    constraint = _constraint(definition)
    missing = sorted(constraint.require.names - set(fields))
    if missing:
        raise LookupError(f"{name} needs {', '.join(missing)}, which the operator does not have")
    return constraint


def _constraint(data: Mapping[str, Any]) -> Constraint:
    changed: dict[str, Any] = {"require": Expression(str(data["require"]))}
    if "applies_to" in data:
        changed["applies_to"] = frozenset(map(FieldKind, data["applies_to"]))
    return Constraint(**{**data, **changed})


def _precision(data: Any) -> tuple[PrecisionEntry, ...]:
    entries = data if isinstance(data, list) else [data]
    return tuple(_precision_entry(entry) for entry in entries)


def _precision_entry(data: Mapping[str, Any]) -> PrecisionEntry:
    kind = RuleKind(data["kind"])
    limit = data.get("limit", 1 if kind is RuleKind.ACCUMULATE else 0)
    by_type = limit if isinstance(limit, Mapping) else {}
    flushed = data.get("flushed_subnormals", DEFAULT_FLUSHED)
    return PrecisionEntry(
        kind=kind,
        source=data["source"],
        limit=0.0 if by_type else float(limit),
        limits=MappingProxyType({DataType(name): float(value) for name, value in by_type.items()}),
        when=Expression(data["when"]) if "when" in data else None,
        products=Expression(str(data["products"])) if "products" in data else None,
        flushed=frozenset(map(DataType, flushed)),
        flushed_by=data.get("flushed_by"),
        signed_zeros=data.get("signed_zeros", False),
        typical=_typical(data["typical"]) if "typical" in data else None,
    )


def _typical(data: Mapping[str, Any]) -> Typical:
    return Typical(
        shares=MappingProxyType({DataType(name): share for name, share in data["share"].items()}),
        measured=data["measured"],
        when=Expression(data["when"]) if "when" in data else None,
    )


@cache
def _common() -> Mapping[str, Any]:
    data: Mapping[str, Any] = read_document(schemas_directory() / "common.yaml").data
    return data


@cache
def tensor_constraints() -> tuple[Constraint, ...]:
    """Return the constraints on the tensors of all operators."""
    return tuple(_constraint(constraint) for constraint in _common()["tensor_constraints"])


@cache
def operator_sets() -> Mapping[str, tuple[str, ...]]:
    """Return the sets of operator names that constraints use, by the set's name."""
    sets = _common()["operator_sets"]
    return MappingProxyType({name: tuple(members) for name, members in sets.items()})


@cache
def enumeration(name: str) -> Enumeration:
    """Return an enum of the header; raise KeyError if the catalogue does not know it."""
    data = _common()["enums"][name]
    since = {value: FeatureLevel.parse(level) for value, level in data.get("since", {}).items()}
    return Enumeration(
        name,
        data.get("prefix", f"{name}_"),
        MappingProxyType(data["values"]),
        MappingProxyType(since),
    )


def is_page(name: str) -> bool:
    """Return whether this is the name, without its ending, of an operator's or enum's page."""
    kind, _, described = name.partition("-directml-")
    try:
        if kind == "ne":
            return enumeration(described.upper()).name.lower() == described
        described = described.removeprefix("dml_").removesuffix("_desc").removesuffix("_operator")
        return operator(described).page == name
    except LookupError:
        return False


@cache
def catalogue_digest() -> str:
    """Return the SHA-256 of all files of the catalogue, in hexadecimal."""
    digest = sha256()
    for path in [schemas_directory() / "common.yaml", *operator_files()]:
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
