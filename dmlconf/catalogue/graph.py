"""The catalogue entry of graphs, so that a graph can be treated like an operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dmlconf.catalogue.model import Entry, FeatureLevel, Field, FieldKind

__all__ = ["GRAPHS", "GRAPH_FACTS", "GRAPH_PAGE", "graph_entry", "is_graphs"]

GRAPHS: Final = "GRAPHS"
"""The name that a graph case has instead of an operator's."""

_NAMES: Final = frozenset({GRAPHS, "GRAPH"})

GRAPH_PAGE: Final = "ns-directml-dml_graph_desc"
"""The documentation page of DML_GRAPH_DESC, without its ending."""

_SINCE: Final = FeatureLevel(2, 1)
"""The feature level that introduced IDMLDevice1::CompileGraph."""

GRAPH_FACTS: Final = (
    Field("Operators", FieldKind.ATTRIBUTE, "const DML_OPERATOR_DESC*", optional=True),
    Field("Neighbours", FieldKind.ATTRIBUTE, "const DML_OPERATOR_DESC*", optional=True),
    Field("NodeCount", FieldKind.ATTRIBUTE, "UINT"),
    Field("ConstantCount", FieldKind.ATTRIBUTE, "UINT"),
)
"""Facts about a graph's nodes that conditions may name.

`Operators` has names such as `GEMM`, `Neighbours` edges such as `GEMM>ACTIVATION_RELU`, and
`NodeCount` counts constants too.
"""


def is_graphs(name: str) -> bool:
    """Return whether a name, in upper or lower case, means graphs instead of an operator."""
    return name.upper() in _NAMES


def graph_entry(inputs: Iterable[str] = (), outputs: Iterable[str] = ()) -> Entry:
    """Return the entry of a graph, whose fields are these inputs and outputs, and `GRAPH_FACTS`.

    Source: the pages of DML_GRAPH_DESC and of IDMLDevice1::CompileGraph.
    """
    tensor = "const DML_TENSOR_DESC*"
    fields = (
        *(Field(name, FieldKind.INPUT, tensor) for name in inputs),
        *(Field(name, FieldKind.OUTPUT, tensor) for name in outputs),
        *GRAPH_FACTS,
    )
    return Entry(
        name=GRAPHS,
        aliases=("GRAPH",),
        struct="DML_GRAPH_DESC",
        since=_SINCE,
        page=GRAPH_PAGE,
        summary="Operators and the edges between them, compiled as one.",
        fields=fields,
    )
