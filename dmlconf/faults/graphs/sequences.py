"""A fault of graphs with several FILL_VALUE_SEQUENCE: DirectML exchanges their outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.faults.computed import Computed
from dmlconf.graphs.model import Graph
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.allowance import Allowance, Interval
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.layout import element_offsets

__all__ = ["first_numbers", "numbers_written", "sequences_in_place_of_each_other"]

_SEQUENCE: Final = "FILL_VALUE_SEQUENCE"


def numbers_written(graph: Graph, operator_name: str) -> Mapping[str, int]:
    """Return by node the index of the graph output to which DirectML writes a sequence.

    DirectML numbers the graph's inputs, constants and sequences in that order, from 0, and writes a
    sequence to the output with the sequence's number. There may be no such output. Sequences that
    are not outputs are numbered, but left out here.

    Args:
        operator_name: the operator that makes the sequences.
    """
    first = len(graph.inputs) + len(graph.constants)
    alike = [node.name for node in graph.operator_nodes if node.operator_name == operator_name]
    exported = {edge.node for edge in graph.output_edges}
    return {name: first + n for n, name in enumerate(alike) if name in exported}


def first_numbers(graph: Graph) -> tuple[int, ...]:
    """Return for each graph output the least index of an output that its node leads to.

    A node leads to the outputs that it feeds, and to those that nodes behind it feed. An output
    that no node feeds has its own index.
    """
    sources = graph.output_sources()
    feeding = [sources[name][0] if name in sources else "" for name in graph.outputs]
    reached = {name: {name, *graph.nodes_behind(name)} for name in set(feeding)}
    return tuple(
        next((n for n, other in enumerate(feeding) if name and other in reached[name]), number)
        for number, name in enumerate(feeding)
    )


def sequences_in_place_of_each_other(case: Case) -> Computed | None:
    """Return the outputs of a graph if DirectML writes its sequences to the wrong outputs.

    In a graph without inputs and constants, output 0 is the first sequence, even if the second
    sequence feeds output 0. The sequence's own desc says where its elements lie: it may leave
    elements of the output unwritten, or extend past the output's end. None if each sequence is
    written to its own output, or if the written outputs are not exactly those that sequences feed.
    """
    graph = case.graph
    names = list(graph.outputs)
    of_output = {name: node for name, (node, _) in graph.output_sources().items()}
    written = numbers_written(graph, _SEQUENCE)
    numbers = {names.index(name) for name, node in of_output.items() if node in written}
    if numbers != set(written.values()):
        return None
    images, sources = {}, {}
    for node, number in written.items():
        name, source = names[number], next(each for each in names if of_output[each] == node)
        if name != source:
            tensor = graph.by_name[node].outputs["OutputTensor"]
            images[name], sources[name] = _Image(tensor, graph.outputs[name]), source
    if not images:
        return None
    right = evaluate(case)
    outputs = {
        name: images[name].seen(right[sources[name]]) if name in images else array
        for name, array in right.items()
    }
    allowances = CaseAllowances(case, right=right)

    def allowance(name: str) -> Allowance:
        if name not in images:
            return allowances.of(name)
        image, source = images[name], sources[name]
        candidates = [
            interval
            for ends in allowances.of(source).candidates
            for interval in image.intervals(ends, right[source])
        ]
        return Allowance(right=outputs[name], candidates=candidates)

    return Computed(
        outputs,
        allowance=allowance,
        unknown={name: image.unwritten() for name, image in images.items()},
        spills=any(image.spills for image in images.values()),
    )


@dataclass(frozen=True, slots=True)
class _Image:
    """A sequence in the buffer of another sequence's output.

    Attributes:
        tensor: the desc by which the sequence is written.
        seen_as: the desc of the output, by which the buffer is read.
    """

    tensor: TensorDesc
    seen_as: TensorDesc

    @property
    def spills(self) -> bool:
        """Whether the sequence is longer than the buffer."""
        end = (int(_offsets(self.tensor).max()) + 1) * self.tensor.DataType.bits // 8
        return end > self.seen_as.TotalTensorSizeInBytes

    def seen(self, values: Array) -> Array:
        """Return the elements of the output; zeros where the sequence writes nothing.

        Args:
            values: the sequence, or one end of its interval; its type may be wider than the
                tensor's.
        """
        wide = values.dtype.itemsize * 8 // self.tensor.DataType.bits
        tensors = (self.tensor, self.seen_as)
        most = max(tensor.TotalTensorSizeInBytes for tensor in tensors) * wide
        content = np.zeros(-(-most // 8), np.uint64)
        content.view(values.dtype)[_offsets(self.tensor)] = values
        dtype = self.seen_as.DataType.dtype
        same = self.tensor.DataType == self.seen_as.DataType
        read: Array = content.view(values.dtype if same else dtype)[_offsets(self.seen_as)]
        return read

    def unwritten(self) -> Array:
        """Return which elements of the output have bytes that the sequence does not write."""
        ones = np.full(self.tensor.Sizes, -1, f"i{self.tensor.DataType.bits // 8}")
        unwritten: Array = self.seen(ones).view(f"i{self.seen_as.DataType.bits // 8}") != -1
        return unwritten

    def intervals(self, ends: Interval, right: Array) -> Iterator[Interval]:
        """Yield intervals for the output's elements; an element must lie in one of them.

        If data types differ, the bits of the reference's sequence and of each end are permitted.

        Args:
            right: the reference's sequence.
        """
        if self.tensor.DataType == self.seen_as.DataType:
            yield self.seen(ends[0]), self.seen(ends[1])
            return
        for end in (ends[0], right, ends[1]):
            values = self.seen(end.astype(self.tensor.DataType.dtype))
            yield values, values


def _offsets(tensor: TensorDesc) -> Array:
    """Return the offset of each element in its buffer, counted in elements."""
    count = np.arange(tensor.ElementCount).reshape(tensor.Sizes)
    return count if tensor.Strides is None else element_offsets(tensor.Sizes, tensor.Strides)
