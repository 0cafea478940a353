"""A fault of graphs: DirectML runs what reads a normalization before the normalization."""

from __future__ import annotations

from typing import Final

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.faults.graphs.unknown import with_unknown_behind
from dmlconf.graphs.model import Node

__all__ = ["read_before_written"]

_IN_STEPS: Final = frozenset(
    {
        "BATCH_NORMALIZATION_GRAD",
        "BATCH_NORMALIZATION_TRAINING",
        "BATCH_NORMALIZATION_TRAINING_GRAD",
        "GRU",
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        "LSTM",
        "MEAN_VARIANCE_NORMALIZATION",
        "MEAN_VARIANCE_NORMALIZATION1",
        "RNN",
    }
)
"""Operators that run several kernels, and whose readers may run before the last one of them."""

_IN_TWO_KERNELS: Final = frozenset(
    {
        "ACTIVATION_HARDMAX",
        "LP_NORMALIZATION",
        "MAX_POOLING_GRAD",
        "MAX_UNPOOLING",
        "QUANTIZED_LINEAR_CONVOLUTION",
        "ROI_ALIGN_GRAD",
        "SCATTER",
        "SCATTER_ELEMENTS",
        "SCATTER_ND",
        "SLICE_GRAD",
    }
)
"""Operators of which some descs run two kernels; most of them clear their output first."""


def read_before_written(case: Case) -> Computed | None:
    """Return the outputs of a graph with those unknown that DirectML may read before it writes.

    These are the outputs of normalizations and recurrent layers that feed another node, and of all
    nodes behind them, if the graph has a node of two kernels that is neither before nor behind
    them. A fused activation may need a kernel of its own. None if there is no such pair of nodes.
    All other outputs are right.
    """
    graph = case.graph
    kinds = {node.name: node.operator_name for node in graph.operator_nodes}
    reached = {name: graph.nodes_behind(name) for name in kinds}
    beside = {node.name for node in graph.operator_nodes if _runs_two_kernels(node)}
    early: list[str] = []
    for name, kind in kinds.items():
        if kind in _IN_STEPS and reached[name]:
            related = {name, *reached[name], *(each for each in beside if name in reached[each])}
            if beside - related:
                early.append(name)
    return with_unknown_behind(case, early)


def _runs_two_kernels(node: Node) -> bool:
    fused = node.desc.get("FusedActivation")
    return node.operator_name in _IN_TWO_KERNELS or fused is not None
