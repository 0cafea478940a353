"""Shorten the entry of a graph: leave out what a tensor's source already says of the tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dmlconf.cases.writing.graph_entry import reference
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.model import FieldKind
from dmlconf.catalogue.tensor_ref import TensorRef

__all__ = ["OWN_DATA", "shortened"]

OWN_DATA: Final = ("values", "fill")
"""The keys of a tensor's entry for its data."""


def shortened(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a graph's entry without the descriptions of tensors that are like their source.

    A node's input `{from: a, Sizes: [2], DataType: FLOAT32}` becomes `a` if the tensor `a` has just
    these fields. An output with just the Sizes and DataType of the node's first input becomes
    empty, except in an array of outputs.

    Args:
        parts: the entry's parts, with each tensor in full.
    """
    tensors: dict[str, Mapping[str, Any]] = {}
    for name, tensor in {**parts.get("inputs", {}), **parts.get("constants", {})}.items():
        tensors[name] = {key: value for key, value in tensor.items() if key not in OWN_DATA}
    graph_inputs = set(parts.get("inputs", {}))
    for name, node in parts["nodes"].items():
        for field in catalogue.operator(node["operator"]).of_kind(FieldKind.OUTPUT):
            written = node["desc"].get(field.name)
            if isinstance(written, Mapping):
                tensors[reference(name, field.name)] = written
            for index, item in enumerate(written if isinstance(written, list) else ()):
                tensors[f"{name}.{TensorRef(field.name, index)}"] = item
    nodes = {name: _node(node, tensors, graph_inputs) for name, node in parts["nodes"].items()}
    return {**parts, "nodes": nodes}


def _node(
    node: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Any]], graph_inputs: set[str]
) -> dict[str, Any]:
    operator = catalogue.operator(node["operator"])
    desc = dict(node["desc"])
    first: Mapping[str, Any] | None = None
    for field in operator.of_kind(FieldKind.INPUT):
        written = desc.get(field.name)
        if first is None and written:
            first = written[0] if isinstance(written, list) else written
        if isinstance(written, list):
            desc[field.name] = [_input(each, tensors, graph_inputs) for each in written]
        elif isinstance(written, Mapping):
            desc[field.name] = _input(written, tensors, graph_inputs)
    like = {key: (first or {}).get(key) for key in ("Sizes", "DataType")}
    for field in operator.of_kind(FieldKind.OUTPUT):
        if desc.get(field.name) == like:
            desc[field.name] = {}
    return {**node, "desc": desc}


def _input(
    written: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Any]], graph_inputs: set[str]
) -> Any:
    source = written.get("from")
    if not isinstance(source, str):
        return written
    tensor = {key: value for key, value in written.items() if key != "from"}
    # A name alone inherits no alignment, and Flags only from an input of the graph.
    inherited = tensors.get(source, {})
    if "GuaranteedBaseOffsetAlignment" in inherited or (
        source not in graph_inputs and "Flags" in inherited
    ):
        return written
    return source if tensor == inherited else written
