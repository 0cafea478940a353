"""Find problems of a graph's entry in a case file without building the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dmlconf.cases.building.graph_build import read_relation
from dmlconf.cases.errors import CaseError
from dmlconf.cases.loading.schema import node_checker
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.documents.problems import Problem
from dmlconf.documents.reader import Document
from dmlconf.documents.schema import schema_problems

__all__ = ["node_problems", "relation_problems"]


def node_problems(document: Document, index: int, entry: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems with the descs of a graph's nodes."""
    nodes = entry.get("nodes")
    for name, node in nodes.items() if isinstance(nodes, Mapping) else ():
        operator = node.get("operator") if isinstance(node, Mapping) else None
        if not isinstance(operator, str):
            continue
        expressions = "matrix" in entry or "repeat" in node
        try:
            operator = catalogue.operator_name(operator)
        except catalogue.UnknownOperatorError:
            continue  # An expression, or reported once the graph can be built.
        if operator == GRAPHS:
            continue  # Building the graph reports it.
        checker = node_checker(operator, matrix=expressions)
        yield from schema_problems(document, checker, node, ("cases", index, "nodes", name))


def relation_problems(
    document: Document, index: int, entry: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yield the problems with the relation of a graph that cannot be built."""
    relation = entry.get("relation")
    if isinstance(relation, str) and not relation.startswith("="):
        try:
            read_relation(relation)
        except CaseError as error:
            yield document.problem(("cases", index, *error.where), error.message, error.hint)
