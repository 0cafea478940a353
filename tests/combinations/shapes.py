"""Give other sizes to descs whose tensors all have equal sizes, as in element-wise operators.

Tensors of one element, such as a scale, keep one element.
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
"""Sizes to try before the last one; a desc takes the first ones."""


def with_other_shapes(
    operator: Operator, desc: Desc, rank: int | None = None, last: Sequence[int] = ()
) -> Iterator[Desc]:
    """Yield the desc with other sizes, unless its tensors differ in their sizes.

    It gets `rank` dimensions, and each last size in `last`.
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
