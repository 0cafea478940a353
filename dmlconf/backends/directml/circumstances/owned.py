"""The circumstance `owned`: DirectML takes over constant inputs (OWNED_BY_DML) from an upload heap.

All inputs become constant but the first and those that share an output's buffer. An input of a
graph becomes constant only if at least one node reads it, and each node that reads it permits
OWNED_BY_DML.
"""

from __future__ import annotations

from dataclasses import replace

from dmlconf.backends.circumstances import Dispatch, Inapplicable
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.backends.directml.circumstances.work import Step
from dmlconf.cases.graph_case import with_graph
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import OWNED, TensorDesc
from dmlconf.graphs.buffers import ownable_inputs, with_owned_inputs

__all__ = ["exercise"]


def exercise(bench: Bench, case: Case) -> list[Dispatch] | Inapplicable:
    """Initialise the operator on two sites with different data, and dispatch on them in turn."""
    flagged = _flagged_graph(case) if case.is_compiled_as_graph else _flagged(case)
    if isinstance(flagged, Inapplicable):
        return flagged
    first, second = bench.site(flagged), bench.site(flagged)
    bench.initialize(first, 0, from_upload=True)
    bench.initialize(second, 1, from_upload=True)
    steps = [Step(first, 0), Step(second, 1), Step(first, 0)]
    return bench.run(steps)


def _flagged_graph(case: Case) -> Case | Inapplicable:
    chosen = frozenset(ownable_inputs(case.graph)) - frozenset(case.in_place.values())
    if not chosen:
        return Inapplicable("no more of its inputs may be constant for all their consumers")
    graph = with_owned_inputs(case.graph, chosen)
    return with_graph(case, graph)


def _flagged(case: Case) -> Case | Inapplicable:
    chosen = frozenset(case.input_names()[1:]) - frozenset(case.in_place.values())
    if not chosen:
        return Inapplicable("it has no input that can be constant")

    def owned(name: str, tensor: TensorDesc) -> TensorDesc:
        if name not in chosen or tensor.Owned:
            return tensor
        return replace(tensor, Flags=(*tensor.Flags, OWNED))

    flagged = case.with_tensors(owned)
    broken = set(flagged.violations()) - set(case.violations())
    if broken:
        return Inapplicable(f"the operator does not permit it: {', '.join(sorted(broken))}")
    return flagged
