"""Estimate from a case's desc how much a device has to compute."""

from __future__ import annotations

from typing import Final

from dmlconf.cases.facts import products
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import Desc, tensors_of
from dmlconf.catalogue.model import FieldKind, Operator

__all__ = ["work_of"]

_LITTLE: Final = 1 << 20
"""The most terms for which an estimate from the sizes of tensors alone is good enough."""


def work_of(case: Case) -> int:
    """Return about how many terms are computed, in a graph by all of its nodes.

    For a node, the elements of its largest output are multiplied by those of its largest input. If
    that is more than `_LITTLE`, the elements of the output are multiplied by `products` instead.
    """
    return sum(_work(node.operator, node.desc) for node in case.graph.operator_nodes)


def _work(operator: Operator, desc: Desc) -> int:
    outputs = _largest(operator, desc, FieldKind.OUTPUT)
    most = outputs * max(1, _largest(operator, desc, FieldKind.INPUT))
    return most if most <= _LITTLE else outputs * products(operator, desc)


def _largest(operator: Operator, desc: Desc, kind: FieldKind) -> int:
    sizes = (tensor.ElementCount for _, _, tensor in tensors_of(operator, desc, kind))
    return max(sizes, default=0)
