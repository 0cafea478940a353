"""Other sizes for descs whose tensors all have the same ones, as those of element-wise operators.

Of a desc of 2x3x5 elements, each tensor has these sizes, or one element, such as a scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind, Operator

__all__ = ["with_other_shapes"]

_KINDS: Final = FieldKind.INPUT, FieldKind.OUTPUT
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
    tensors = [tensor for _, _, tensor in tensors_of(operator, desc, *_KINDS)]
    shapes = {tensor.Sizes for tensor in tensors if tensor.ElementCount > 1}
    ranks = {tensor.DimensionCount for tensor in tensors}
    if len(shapes) != 1 or len(ranks) != 1:
        return
    [shape] = shapes
    for size in last or dict.fromkeys((shape[-1], 5)):
        for leading in _LEADING:
            sizes = (*leading[: (rank or len(shape)) - 1], size)
            if sizes != shape:
                yield _reshaped(operator, desc, sizes)


def _reshaped(operator: Operator, desc: Desc, sizes: tuple[int, ...]) -> Desc:
    changed: dict[str, Any] = dict(desc)
    for each in operator.of_kind(*_KINDS):
        value = desc.get(each.name)
        if isinstance(value, TensorDesc):
            changed[each.name] = _sized(value, sizes)
        elif value is not None:
            changed[each.name] = tuple(_sized(tensor, sizes) for tensor in value)
    return changed


def _sized(tensor: TensorDesc, sizes: tuple[int, ...]) -> TensorDesc:
    if tensor.ElementCount == 1:
        return replace(tensor, Sizes=(1,) * len(sizes), Strides=None)
    return replace(tensor, Sizes=sizes)
