"""Convert WebNN's tests of two operators into graphs: the second reads the output of the first."""

from __future__ import annotations

from typing import Final

from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import Case, ExpectedOutputs, Provenance
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.graphs.model import Graph, InputEdge, IntermediateEdge, Node, OutputEdge
from tests.backends.stated_cases import NoCaseError

__all__ = ["graph_of_two"]

_FIRST: Final = "first"
_SECOND: Final = "second"
_INPUT: Final = "InputTensor"
_OUTPUT: Final = "OutputTensor"


def graph_of_two(first: Case, second: Case) -> GraphCase:
    """Return the graph whose second operator reads the output of the first.

    The first operator's expected output and the data that the second reads are ignored.
    """
    nodes = {
        _FIRST: Node(_FIRST, first.operator_name, first.desc),
        _SECOND: Node(_SECOND, second.operator_name, second.desc),
    }
    ends = [
        (name, tensor)
        for name, node in nodes.items()
        for tensor in node.inputs
        if (name, tensor) != (_SECOND, _INPUT)
    ]
    data = {_FIRST: first.data, _SECOND: second.data}
    graph = Graph(
        inputs={_joined(*end): nodes[end[0]].inputs[end[1]] for end in ends},
        outputs={_OUTPUT: nodes[_SECOND].outputs[_OUTPUT]},
        nodes=tuple(nodes.values()),
        input_edges=tuple(InputEdge(_joined(*end), *end) for end in ends),
        intermediate_edges=(IntermediateEdge(_FIRST, _OUTPUT, _SECOND, _INPUT),),
        output_edges=(OutputEdge(_SECOND, _OUTPUT, _OUTPUT),),
    )
    assert isinstance(second.expectation, ExpectedOutputs)
    case = GraphCase(
        identifier=second.identifier,
        operator_name=GRAPHS,
        desc={**graph.inputs, **graph.outputs},
        data={_joined(*end): data[end[0]][end[1]] for end in ends},
        expectation=ExpectedOutputs(second.expectation.outputs, Provenance.STATED),
        tags=second.tags,
        about=second.about,
        graph=graph,
    )
    violations = case.violations()
    if violations:
        raise NoCaseError(f"DirectML refuses it: {violations[0]}")
    return case


def _joined(node: str, tensor: str) -> str:
    return f"{node} {tensor}"
