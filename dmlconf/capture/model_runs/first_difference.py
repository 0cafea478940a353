"""Find where two providers of ONNX Runtime first differ inside a model.

The outputs of some nodes at a time become outputs of the model, and both providers run that model,
until an output differs by more than `output_difference` permits. With more outputs ONNX Runtime
fuses less, so that a difference may disappear in the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dmlconf.capture.model_runs.onnx_graph import OnnxGraph, OnnxNode
from dmlconf.capture.model_runs.onnx_sessions import OnnxRuntimeError, OpenSession
from dmlconf.capture.model_runs.output_difference import OutputDifference, output_difference
from dmlconf.limits import LARGEST_INTERMEDIATES
from dmlconf.tensors.datatypes import Array
from dmlconf.workers.memory import parts_that_fit

__all__ = ["FirstDifference", "Search", "first_difference", "search_lines"]

_MOST_NODES_AT_A_TIME: Final = 64
"""The most nodes whose outputs a run of several nodes returns."""

_MOST_OUTPUTS_OF_UNKNOWN_SIZE: Final = 8
"""The most outputs of unknown size that a run of several nodes returns."""

_MOST_FAILURES: Final = 5
"""The most nodes that a report names as not compared."""


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first node whose output differs.

    Attributes:
        output: the first of its outputs that differs.
        inputs: how far each computed input differs once it is an output of the model too; empty if
            that model failed.
        with_returned_inputs: how far the output differs in that model; None if the model failed.
        alone: how far the output differs if the node is a model of its own, with the inputs that
            the CPU provider computes; None if that failed or was impossible.
    """

    node: OnnxNode
    output: str
    difference: OutputDifference
    inputs: Mapping[str, OutputDifference]
    with_returned_inputs: OutputDifference | None
    alone: OutputDifference | None


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found.

    Attributes:
        first: the first difference; None if no output of a compared node differs.
        compared: how many nodes were compared, including the first that differs; only nodes with a
            tensor of numbers as output count.
        failures: why nodes were not compared, by name.
    """

    first: FirstDifference | None
    compared: int
    failures: Mapping[str, str]


def first_difference(
    graph: OnnxGraph, inputs: Mapping[str, Array], cpu: OpenSession, tested: OpenSession
) -> Search:
    """Find the first node whose output differs between two providers.

    Args:
        cpu: opens a session of the provider that is taken as right.
        tested: opens a session of the provider under test.
    """
    runs = _Runs(graph, inputs, cpu, tested)
    compared = 0
    for nodes in _batches(graph.nodes, graph.tensor_bytes(inputs)):
        differences = runs.compared(nodes)
        for node in nodes:
            outputs = [name for name in node.outputs if name in differences]
            compared += any(differences[name].compared for name in outputs)
            wrong = next((name for name in outputs if differences[name].beyond), None)
            if wrong is not None:
                first = runs.described(node, wrong, differences[wrong])
                return Search(first, compared, runs.failures)
    return Search(None, compared, runs.failures)


def _batches(nodes: Sequence[OnnxNode], sizes: Mapping[str, int]) -> Iterator[Sequence[OnnxNode]]:
    """Yield the nodes in order, in parts that fit into one run, of one node or more."""
    unknown = LARGEST_INTERMEDIATES // _MOST_OUTPUTS_OF_UNKNOWN_SIZE
    return parts_that_fit(
        nodes,
        lambda node: sum(sizes.get(name, unknown) for name in node.outputs),
        _MOST_NODES_AT_A_TIME,
        LARGEST_INTERMEDIATES,
    )


@dataclass(frozen=True, slots=True)
class _Runs:
    graph: OnnxGraph
    inputs: Mapping[str, Array]
    cpu: OpenSession
    tested: OpenSession
    failures: dict[str, str] = field(default_factory=dict)

    def compared(self, nodes: Sequence[OnnxNode]) -> dict[str, OutputDifference]:
        """Compare the outputs of nodes, by name.

        If a model with all of them cannot run, each half is compared separately. A node that fails
        alone is added to `failures`.
        """
        names = [name for node in nodes for name in node.outputs]
        try:
            return self._differences(names)
        except OnnxRuntimeError as error:
            if len(nodes) == 1:
                self.failures[nodes[0].name] = str(error)
                return {}
        middle = len(nodes) // 2
        return {**self.compared(nodes[:middle]), **self.compared(nodes[middle:])}

    def _differences(self, names: Sequence[str]) -> dict[str, OutputDifference]:
        model, outputs = self.graph.with_outputs(names)
        expected = self.cpu(model).run(outputs, self.inputs)
        actual = self.tested(model).run(outputs, self.inputs)
        return dict(zip(names, map(output_difference, actual, expected), strict=True))

    def described(
        self, node: OnnxNode, output: str, difference: OutputDifference
    ) -> FirstDifference:
        """Return the first difference, with how far the node's inputs and the node alone differ."""
        read = [name for name in dict.fromkeys(node.inputs) if name not in self.graph.constants]
        computed = [name for name in read if name not in self.inputs]
        try:
            again = self._differences([*computed, *node.outputs])
        except OnnxRuntimeError:
            again = {}
        inputs = {name: again[name] for name in computed if name in again}
        alone = self._alone(node, output, read)
        return FirstDifference(node, output, difference, inputs, again.get(output), alone)

    def _on_cpu(self, names: Sequence[str]) -> dict[str, Array]:
        if not names:
            return {}  # ONNX Runtime returns every output if asked for none.
        model, outputs = self.graph.with_outputs(names)
        return dict(zip(names, self.cpu(model).run(outputs, self.inputs), strict=True))

    def _alone(self, node: OnnxNode, output: str, read: Sequence[str]) -> OutputDifference | None:
        computed = [name for name in read if name not in self.inputs]
        try:
            values = {**self.inputs, **self._on_cpu(computed)}
            inputs = {name: values[name] for name in read}
            if not all(isinstance(value, np.ndarray) for value in inputs.values()):
                return None
            own = self.graph.alone(node, inputs)
            if own is None:
                return None
            expected = self.cpu(own).run([output], inputs)
            actual = self.tested(own).run([output], inputs)
        except OnnxRuntimeError:
            return None
        return output_difference(actual[0], expected[0])


def search_lines(search: Search) -> Iterator[str]:
    """Yield the result of a search as lines of text."""
    first = search.first
    if first is None:
        yield (
            f"No output of {search.compared:,} nodes differs once it is an output of the model, "
            "which changes what ONNX Runtime fuses: look at its fusions, or try --unfused."
        )
    else:
        node = first.node
        yield f"First difference: {first.output} of the node {node.name} ({node.operator})"
        yield f"  {first.output}: {first.difference.text}"
        yield from (f"  it reads {name}: {each.text}" for name, each in first.inputs.items())
        yield f"  {_verdict(first)}"
        if search.compared > 1:
            count = search.compared - 1
            nodes = "1 node before it is" if count == 1 else f"{count:,} nodes before it are"
            yield (
                f"  {nodes} right; outputs of nodes were made outputs of the model, which changes "
                "what ONNX Runtime fuses."
            )
    for name, reason in list(search.failures.items())[:_MOST_FAILURES]:
        yield f"Not compared: {name}: {reason}"
    if len(search.failures) > _MOST_FAILURES:
        yield f"and {len(search.failures) - _MOST_FAILURES:,} nodes more"


def _verdict(first: FirstDifference) -> str:
    if first.alone is not None and first.alone.beyond:
        return f"alone, with the CPU provider's inputs: {first.alone.text}"
    if first.with_returned_inputs is not None and not first.with_returned_inputs.beyond:
        return (
            "with what it reads as outputs of the model, too, it is right: what ONNX Runtime "
            "fuses it with is suspect"
        )
    if first.alone is not None:
        return (
            "alone, with the CPU provider's inputs, it is right: it enlarges what its inputs "
            "differ by, or is wrong only among its neighbours"
        )
    return "it could not be run alone"
