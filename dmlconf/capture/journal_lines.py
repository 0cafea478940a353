"""Describe compiled operators and graphs in lines of the journal, in the form of case files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from dmlconf.capture.graph_decoding import DecodedGraph
from dmlconf.cases.writing.desc_entry import attribute_entry, desc_entry, tensor_entry
from dmlconf.cases.writing.graph_entry import graph_parts
from dmlconf.catalogue.desc import Desc
from dmlconf.catalogue.model import Operator
from dmlconf.tensors.datatypes import Array

__all__ = ["graph_line", "operator_line"]

Line = tuple[str, Mapping[str, Any]]
"""A digest of an operator or graph with its flags, and its line in the journal."""


def operator_line(operator: Operator, desc: Desc, flags: int) -> Line:
    """Return the line of an operator that is compiled with these DML_EXECUTION_FLAGS."""
    content = {
        "operator": operator.name,
        "desc": desc_entry(operator, desc, {}),
        "flags": flags,
    }
    return _keyed(content, {})


def graph_line(decoded: DecodedGraph, flags: int) -> Line:
    """Return the line of a graph; `decoded.names` and `decoded.unused` do not change its digest."""
    parts = graph_parts(decoded.graph, {}, tensor_entry, attribute_entry)
    for constant in decoded.graph.constants:
        parts["constants"][constant.name] |= _data(constant.data)
    content = {"graph": parts, "flags": flags}
    return _keyed(content, {"names": decoded.names, "unused": decoded.unused})


def _data(array: Array) -> Mapping[str, Any]:
    """Return a constant's data as in a case file: a fill if all of several elements are equal.

    NaN, and zeros of both signs, are listed.
    """
    first = array.flat[:1]
    equal = bool((array == first).all())
    if array.size > 1 and equal and array.tobytes() == first.tobytes() * array.size:
        return {"fill": {"constant": {"value": array.flat[0].item()}}}
    return {"values": array.ravel().tolist()}


def _keyed(content: Mapping[str, Any], more: Mapping[str, Any]) -> Line:
    text = json.dumps(content, sort_keys=True)
    return sha256(text.encode()).hexdigest(), {**content, **more}
