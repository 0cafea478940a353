"""Write a case as a separate file, with its data in NumPy files in a folder next to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from dmlconf.cases.model import (
    EXECUTION_TAGS,
    Case,
    ExpectedOutputs,
    ExpectedRejection,
    Provenance,
)
from dmlconf.cases.tolerance import Tolerance
from dmlconf.cases.writing.desc_entry import attribute_entry, desc_entry, tensor_entry
from dmlconf.cases.writing.graph_entry import graph_parts
from dmlconf.catalogue.model import FieldKind
from dmlconf.catalogue.precision import RuleKind
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.documents.whole_files import whole_file, write_whole
from dmlconf.tensors.datatypes import Array

__all__ = ["array_file", "export_case", "exported_name"]

_LONGEST_NAME: Final = 120


def exported_name(identifier: str) -> str:
    """Return a case's identifier as the name of a file: `gather-matrix-Axis-1`.

    The name has at most 120 characters, none of them special. Two cases may have the same name.
    """
    return re.sub(r"[^\w.]+", "-", identifier).strip("-.")[:_LONGEST_NAME]


def array_file(folder: Path, tensor: str, role: str, array: Array) -> str:
    """Write an array as `folder/TENSOR.ROLE.npy`, and return its path from the folder's parent.

    `InputTensors[0]` becomes `InputTensors-0`. The folder must exist.
    """
    # Hyphens and underscores stay: `a`, `a-` and `a_` may be three tensors of a graph.
    name = f"{re.sub(r'[^A-Za-z0-9_-]+', '-', tensor.removesuffix(']'))}.{role}.npy"
    with whole_file(folder / name) as stream:
        np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
    return f"{folder.name}/{name}"


def export_case(
    path: Path,
    case: Case,
    expectation: ExpectedOutputs | ExpectedRejection | None,
    inputs: Mapping[str, Array],
    *,
    listed: int = 0,
    note: str | None = None,
) -> None:
    """Write a case file with one case, and its larger data into a folder next to it.

    Of the tags, only `EXECUTION_TAGS` are written. Outputs of the reference are not written.

    Args:
        path: the case file, such as `x/case.yaml`; its folder of data, `x/case`, must exist.
        expectation: what the case itself or a recording expects; not written if the case has a
            relation. An array of outputs is not written if some of them are unknown.
        listed: inputs of at most this many elements are lists in the case file.
        note: what the file says about the case; by default `As IDENTIFIER.`.
    """
    folder = path.with_suffix("")
    entry: dict[str, Any] = {"name": path.stem, "note": note or f"As {case.identifier}."}
    tags = [tag for tag in EXECUTION_TAGS if tag in case.tags]
    if tags:
        entry["tags"] = tags
    values = {
        name: array.ravel().tolist()
        if array.size <= listed
        else {"file": array_file(folder, name, "input", array)}
        for name, array in inputs.items()
    }
    entry |= _parts(case, folder, values)
    if case.in_place:
        entry["in_place"] = dict(case.in_place)
    if case.relation is not None:
        entry["relation"] = str(case.relation)
    else:
        entry |= _expect(case, folder, expectation)
    outputs = case.outputs()
    tolerances = {name: each for name, each in case.tolerances.items() if name in outputs}
    if tolerances:
        entry["tolerance"] = {name: _tolerance_entry(each) for name, each in tolerances.items()}
    if case.disputes is not None and "expect" in entry:
        entry["disputes"] = case.disputes
    head = {"operator": case.operator_name}
    if case.nodes:
        head = {"graph": f"as {case.identifier}"}
    document = {**head, "page": case.about.page, "cases": [entry]}
    text = yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)
    write_whole(path, text)


def _parts(case: Case, folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    if case.nodes:
        constants = {
            part.name: {"file": array_file(folder, part.name, "constant", part.data)}
            for part in case.graph.constants
        }
        return graph_parts(case.graph, {**values, **constants}, tensor_entry, attribute_entry)
    data = {name: {"values": each} for name, each in values.items()}
    return {"desc": desc_entry(case.operator, case.desc, data)}


def _tolerance_entry(tolerance: Tolerance) -> dict[str, Any]:
    rule = tolerance.rule
    entry: dict[str, Any] = {str(rule.kind): rule.limit}
    if rule.kind is RuleKind.RELATIVE and rule.absolute:
        entry["absolute"] = rule.absolute
    if tolerance.reason is not None:
        entry["reason"] = tolerance.reason
    return entry


def _expect(
    case: Case, folder: Path, expectation: ExpectedOutputs | ExpectedRejection | None
) -> dict[str, Any]:
    if expectation is None or expectation.provenance is Provenance.REFERENCE:
        return {}
    source = _source(case, expectation.provenance)
    if isinstance(expectation, ExpectedRejection):
        entry = {"rejected": expectation.hresult}
        if expectation.constraint is not None:
            entry["constraint"] = expectation.constraint
        return {**source, "expect": entry}
    expect: dict[str, Any] = {}
    for field in case.entry.of_kind(FieldKind.OUTPUT):
        named = {
            name: {"file": array_file(folder, name, "expected", array)}
            for name, array in expectation.outputs.items()
            if TensorRef.of(name).field == field.name
            and expectation.provenance_of(name) is not Provenance.REFERENCE
        }
        if named and not field.is_array:
            expect[field.name] = named[field.name]
        elif named and len(named) == sum(
            TensorRef.of(n).field == field.name for n in case.outputs()
        ):
            expect[field.name] = [named[str(TensorRef(field.name, i))] for i in range(len(named))]
    return {**source, "expect": expect} if expect else {}


def _source(case: Case, provenance: Provenance) -> dict[str, str]:
    """Return the key that says where an expectation comes from; none for the page."""
    match provenance:
        case Provenance.RECORDED:
            recorded = case.about.recorded
            return {"recorded": recorded or f"the suite's recording of {case.identifier}"}
        case Provenance.STATED if case.about.origin is not None:
            return {"origin": case.about.origin}
    return {}
