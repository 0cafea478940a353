"""The circumstance `aliased`: outputs share buffers of inputs where the catalogue permits it.

A graph must have a single operator, since DirectML's pages permit shared buffers only for
operators. Its tensors must be packed, since CompileGraph may write copies of other tensors into an
output's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from dmlconf.backends.circumstances import Dispatch, Inapplicable
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.buffers import in_place_pairs, may_share_buffers
from dmlconf.tensors.layout import packed_strides

__all__ = ["exercise"]

_MOST: Final = 2


def exercise(bench: Bench, case: Case) -> list[Dispatch] | Inapplicable:
    """Dispatch a case three times for each of at most two choices of shared buffers.

    The case's own choice is left out.
    """
    if bench.compiles_as_graph(case) and not may_share_buffers(case.graph):
        return Inapplicable("no page permits it for a graph")
    choices = [choice for choice in _choices(case) if choice != case.in_place][:_MOST]
    if not choices:
        other = "other " if case.in_place else ""
        reason = f"no {other}output may share the buffer of an input with the same layout"
        return Inapplicable(reason)
    seen = []
    for choice in choices:
        site = bench.site(replace(case, in_place=choice))
        bench.initialize(site)
        seen += bench.run(bench.variations(site, [0, 1, 0]))
    return seen


def _choices(case: Case) -> Iterator[Mapping[str, str]]:
    """Yield mappings from outputs to inputs; no two have the same input in their first pair."""
    graph = case.graph
    pairs = [
        (output, source)
        for output, source in in_place_pairs(graph)
        if _alike(graph.outputs[output], graph.inputs[source])
    ]
    for first in dict.fromkeys(source for _, source in pairs):
        choice: dict[str, str] = {}
        for output, source in sorted(pairs, key=lambda pair: pair[1] != first):
            if output not in choice and source not in choice.values():
                choice[output] = source
        yield choice


def _alike(output: TensorDesc, source: TensorDesc) -> bool:
    if source.Owned:
        return False
    return (
        output.DataType is source.DataType
        and output.Sizes == source.Sizes
        and _strides(output) == _strides(source)
        and output.TotalTensorSizeInBytes == source.TotalTensorSizeInBytes
        and not source.OverlappingStrides
    )


def _strides(tensor: TensorDesc) -> tuple[int, ...]:
    return tuple(packed_strides(tensor.Sizes)) if tensor.Strides is None else tensor.Strides
