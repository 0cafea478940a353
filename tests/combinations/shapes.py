"""Other sizes for descs whose tensors all have the same sizes, such as element-wise operators.

Of a desc of 2x3x5 elements, each tensor has these sizes, or one element, such as a scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import Field, Operator
from tests.combinations.tensors import with_tensors

__all__ = ["with_other_shapes"]

_LEADING: Final = (
    (2, 3, 2, 1, 1, 1, 1),
    (1, 3, 2, 1, 1, 1, 1),
    (2, 3, 1, 1, 1, 1, 1),
    (1, 3, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 1, 1),
)
"""Sizes before the last one, the first that fit: channels are the second."""


def with_other_shapes(
    operator: Operator, desc: Desc, rank: int | None = None, last: Sequence[int] = ()
) -> Iterator[Desc]:
    """Yield the desc with other sizes, if all its tensors have the same.

    Args:
        operator: the operator.
        desc: the desc.
        rank: how many sizes; by default as many as it has.
        last: the last sizes to try; by default the one that it has, or another one.
    """
    tensors = [tensor for _, _, tensor in tensors_of(operator, desc)]
    shapes = {tensor.Sizes for tensor in tensors if tensor.ElementCount > 1}
    ranks = {tensor.DimensionCount for tensor in tensors}
    if len(shapes) != 1 or len(ranks) != 1:
        return
    [shape] = shapes
    for size in last or dict.fromkeys((shape[-1], 5)):
        for leading in _LEADING:
            sizes = (*leading[: (rank or len(shape)) - 1], size)
            if sizes != shape:
                yield with_tensors(operator, desc, partial(_sized, sizes))


def _sized(sizes: tuple[int, ...], each: Field, tensor: TensorDesc) -> TensorDesc:
    if tensor.ElementCount == 1:
        return replace(tensor, Sizes=(1,) * len(sizes), Strides=None)
    return replace(tensor, Sizes=sizes)
