"""A fault of graphs: DirectML runs what reads a normalization or a softmax before that one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.faults.graphs.unknown import with_unknown
from dmlconf.graphs.model import Node

__all__ = ["read_before_written"]

_IN_STEPS: Final = frozenset(
    {
        "ACTIVATION_LOG_SOFTMAX",
        "ACTIVATION_SOFTMAX",
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


_RIGHT_THEMSELVES: Final = frozenset(
    {
        "ACTIVATION_LOG_SOFTMAX",
        "ACTIVATION_SOFTMAX",
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        "MEAN_VARIANCE_NORMALIZATION",
        "MEAN_VARIANCE_NORMALIZATION1",
    }
)
"""Those of `_IN_STEPS` whose own outputs are right, measured in 62 graphs on DirectML 1.9.1."""

_IN_ONE_KERNEL: Final[Mapping[str, Collection[str]]] = {
    "BATCH_NORMALIZATION": {"ACTIVATION_RELU"},
    "ELEMENT_WISE_ADD1": {"ACTIVATION_IDENTITY", "ACTIVATION_LEAKY_RELU", "ACTIVATION_RELU"},
}
"""The activations that an operator's own kernel computes, of 4 and of 16 tried on DirectML 1.9.1.
GEMM has none, of 4."""


def read_before_written(case: Case) -> Computed | None:
    """Return the outputs of a graph with those unknown that DirectML may read before it writes.

    These are the outputs of all nodes behind a normalization, a softmax or a recurrent layer, if
    the graph has a node of two kernels that is neither before nor behind the layer. A fused
    activation may need a kernel of its own. The layer's own outputs are unknown, too, unless it is
    in `_RIGHT_THEMSELVES`. None if there is no such pair of nodes. All other outputs are right.
    """
    graph = case.graph
    kinds = {node.name: node.operator_name for node in graph.operator_nodes}
    reached = {name: graph.nodes_behind(name) for name in kinds}
    beside = {node.name for node in graph.operator_nodes if _runs_two_kernels(node)}
    early: set[str] = set()
    for name, kind in kinds.items():
        if kind in _IN_STEPS and reached[name]:
            related = {name, *reached[name], *(each for each in beside if name in reached[each])}
            if beside - related:
                early |= reached[name]
                if kind not in _RIGHT_THEMSELVES:
                    early.add(name)
    return with_unknown(case, early)


def _runs_two_kernels(node: Node) -> bool:
    fused = node.desc.get("FusedActivation")
    if node.operator_name in _IN_TWO_KERNELS or _is_convolution_in_two_kernels(node):
        return True
    own = _IN_ONE_KERNEL.get(node.operator_name, ())
    return fused is not None and fused["operator"] not in own


def _is_convolution_in_two_kernels(node: Node) -> bool:
    """Whether the node is a CONVOLUTION that makes others be read too early.

    Measured on DirectML 1.9.1 with 37 descs, beside a normalization and two kinds of softmax: 7 of
    8 descs with OutputPadding do, and of the others exactly the 3 of the second condition.
    """
    if node.operator_name != "CONVOLUTION":
        return False
    desc = node.desc
    return any(desc["OutputPadding"]) or (
        desc["Direction"] == "BACKWARD"
        and tuple(desc["Strides"]) == (2, 2)
        and tuple(desc["Dilations"]) == (1, 1)
        and desc["GroupCount"] == 1
        and tuple(node.inputs["FilterTensor"].Sizes[2:]) != (1, 1)
    )
