"""Find outputs that disagree: the rule of each permits it by itself, but not beside the others.

The outputs of a graph's node are judged so if the node reads nothing but inputs and constants of
the graph. What other nodes read is not known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.model import FieldKind
from dmlconf.catalogue.precision import PrecisionRule
from dmlconf.documents.wording import counted
from dmlconf.graphs.model import Constant, Node
from dmlconf.permitted.functions import permitted_function
from dmlconf.precision.allowed import MOST_INTERVALS, off_by
from dmlconf.precision.compare import MOST_DIFFERENCES
from dmlconf.precision.consequences import Consequence, best_choice
from dmlconf.reference.evaluation import MissingFunction, arguments
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample

__all__ = ["Disagreement", "disagreements"]

_Outputs = Mapping[str, Array | Sample]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An output that other outputs contradict.

    Attributes:
        message: how many elements of the output contradict which other outputs.
        differences: the first of these elements, as in `Reason.differences`, each with `tensor`,
            `coordinates`, `expected`, `allowed`, `actual`, `off_by` and `unit`.
    """

    output: str
    message: str
    differences: tuple[Mapping[str, Any], ...]


def disagreements(case: Case, outputs: _Outputs) -> Iterator[Disagreement]:
    """Yield the outputs that contradict others, as far as functions `..._consequences` tell.

    Nothing is known of a case with a tolerance that replaces a rule.

    Args:
        outputs: some or all outputs of the case, of the right data types and sizes. Each is right
            by itself.
    """
    if len(outputs) < 2 or any(each.reason for each in case.tolerances.values()):
        return
    if not case.nodes:
        yield from _of_operator(case, outputs, {})
        return
    for node in case.graph.operator_nodes:
        if len(node.outputs) > 1 and _reads_only_inputs(case, node):
            yield from _of_node(case, node, outputs)


def _function(operator: str) -> Callable[..., Sequence[Consequence]] | None:
    try:
        return permitted_function(operator, "consequences")
    except MissingFunction:
        return None


def _of_operator(case: Case, outputs: _Outputs, names: Mapping[str, str]) -> Iterator[Disagreement]:
    """Yield the disagreements of an operator's outputs.

    Args:
        names: the names that outputs have in messages, if not their own.
    """
    function = _function(case.operator_name)
    if function is None:
        return
    fields = arguments(case.entry, case, case.inputs())
    for field in case.entry.of_kind(FieldKind.OUTPUT):
        known = outputs.get(field.name)
        fields[field.name] = known if isinstance(known, np.ndarray) else None
    for consequence in function(**fields):
        output = outputs.get(consequence.output)
        if output is not None:
            rule = case.rule(consequence.output)
            yield from _of_output(output, consequence, rule, names)


def _of_output(
    output: Array | Sample,
    consequence: Consequence,
    rule: PrecisionRule,
    names: Mapping[str, str],
) -> Iterator[Disagreement]:
    if isinstance(output, Sample):
        values, indices = output.values, output.indices
    else:
        values = np.ascontiguousarray(output).ravel()
        indices = np.arange(values.size)
    candidates, outside = best_choice(values, indices, consequence)
    if not len(outside):
        return
    name, *given = (names.get(each, each) for each in (consequence.output, *consequence.given))
    verb = "contradicts" if len(outside) == 1 else "contradict"
    elements = counted(values.size, "element")
    message = f"{len(outside):,} of {elements} of {name} {verb} {' and '.join(given)}"
    differences = []
    for position, at in enumerate(outside[:MOST_DIFFERENCES]):
        ends = [(low[position].item(), high[position].item()) for low, high in candidates]
        actual, expected = values[at].item(), ends[0][0]
        distance, unit = off_by(actual, expected, rule, values)
        differences.append(
            {
                "tensor": name,
                "coordinates": [int(i) for i in np.unravel_index(indices[at], output.shape)],
                "expected": expected,
                "allowed": [list(both) for both in dict.fromkeys(ends)][:MOST_INTERVALS],
                "actual": actual,
                "off_by": distance,
                "unit": unit,
            }
        )
    yield Disagreement(name, message, tuple(differences))


def _reads_only_inputs(case: Case, node: Node) -> bool:
    sources, nodes = case.graph.sources(), case.graph.by_name
    fed = (sources.get((node.name, name)) for name in node.inputs)
    return all(
        isinstance(source, str) or (source and isinstance(nodes[source[0]], Constant))
        for source in fed
    )


def _of_node(case: Case, node: Node, outputs: _Outputs) -> Iterator[Disagreement]:
    """Yield the disagreements of a node's outputs, as far as they are outputs of the graph."""
    known: dict[str, Array] = {}
    names: dict[str, str] = {}
    for name, (producer, tensor) in case.graph.output_sources().items():
        if producer != node.name or case.graph.outputs[name] != node.outputs[tensor]:
            continue  # An output with other Sizes or Strides may lack elements of the node's.
        array = outputs.get(name)
        if isinstance(array, np.ndarray):
            known[tensor], names[tensor] = array, name
    if len(known) > 1:
        from dmlconf.judging.nodes import node_alone  # Few cases are graphs.

        yield from _of_operator(node_alone(case, node, {}), known, names)
