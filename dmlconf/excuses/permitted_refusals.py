"""Inputs for which a target may refuse a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import evaluate_nodes
from dmlconf.tensors.datatypes import Array

__all__ = ["REFUSALS"]


def _zero_divisor(case: Case, inputs: Mapping[str, Array]) -> bool:
    """An integer is divided by 0."""
    divisor = inputs["BTensor"]
    return divisor.dtype.kind in "iu" and bool((divisor == 0).any())


def _index_out_of_bounds(case: Case, inputs: Mapping[str, Array]) -> bool:
    """An index is outside [-s, s - 1], where s is the size of its axis.

    For MAX_UNPOOLING, s is how many elements the output has. In a graph, the nodes' indices count.
    """
    if case.nodes:
        nodes = evaluate_nodes(case, evaluate).cases.values()
        return any(
            _index_out_of_bounds(node, node.inputs())
            for node in nodes
            if {"InputTensor", "IndicesTensor"} <= node.desc.keys()  # Not ONE_HOT.
        )
    desc, indices = case.desc, inputs["IndicesTensor"]
    if "Axis" in desc:
        return _outside(indices, desc["InputTensor"].Sizes[desc["Axis"]])
    if "InputDimensionCount" in desc:
        sizes = desc["InputTensor"].Sizes[-desc["InputDimensionCount"] :]
        first = desc.get("BatchDimensionCount", 0)
        count = indices.shape[-1]
        return any(_outside(indices[..., n], sizes[first + n]) for n in range(count))
    return _outside(indices, int(np.prod(desc["OutputTensor"].Sizes)))


def _batch_out_of_bounds(case: Case, inputs: Mapping[str, Array]) -> bool:
    """A region names a batch that the input does not have: -1, or 4 if it has four."""
    batches = inputs["ROITensor"].reshape(-1, 5)[:, 0]
    return not bool(((batches > -1) & (batches < case.desc["InputTensor"].Sizes[0])).all())


def _outside(indices: Array, size: int) -> bool:
    values = indices.astype(object)  # UINT64 and negative numbers have no common type.
    return bool(((values < -size) | (values >= size)).any())


def _sequence_too_long(case: Case, inputs: Mapping[str, Array]) -> bool:
    """A length in SequenceLengthsTensor exceeds the size of the axis along which sequences run."""
    desc: Mapping[str, Any] = case.desc
    lengths = inputs.get("SequenceLengthsTensor")
    longest = desc["InputTensor"].Sizes[desc.get("Axis", 1)]
    return lengths is not None and bool((lengths > longest).any())


REFUSALS: Final[Mapping[str, Callable[[Case, Mapping[str, Array]], bool]]] = {
    "zero divisor": _zero_divisor,
    "index out of bounds": _index_out_of_bounds,
    "batch out of bounds": _batch_out_of_bounds,
    "sequence too long": _sequence_too_long,
}
"""The functions, by the names that `schemas/targets/*.yaml` uses."""
