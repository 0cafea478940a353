"""Choose layouts, flags, alignments, buffer sizes and shared buffers for a random desc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from dmlconf.catalogue.constraints import violations
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.goals import Goal, Part
from dmlconf.tensors.layout import LAYOUTS, packed_strides

__all__ = ["in_place_pairs", "with_random_layouts"]

_Change = Callable[[TensorDesc], TensorDesc]

_LAYOUTS: Final = (
    ("implicit", 10),
    ("packed", 2),
    ("padded", 2),
    ("transposed", 2),
    ("broadcast", 2),
)


def with_random_layouts(operator: Operator, desc: Desc, goal: Goal, chance: Chance) -> Desc:
    """Return a valid desc in which tensors have random layouts, flags, alignments and buffer sizes.

    If the goal is a layout or a flag, its field gets it; the field of another goal stays as it is.
    In half of all calls, no other field changes. A change that makes the desc invalid is dropped.

    Args:
        desc: a valid desc with packed tensors.
    """
    if goal.part in (Part.LAYOUT, Part.FLAG):
        desc = _if_valid(operator, desc, goal.field, lambda tensor: _toward(tensor, goal))
    if chance.once_in(2):
        return desc
    for field in operator.of_kind(FieldKind.INPUT, FieldKind.OUTPUT):
        if desc[field.name] is None or field.name == goal.field:
            continue
        is_input = field.kind is FieldKind.INPUT
        desc = _if_valid(
            operator, desc, field.name, partial(_changed, chance=chance, is_input=is_input)
        )
    return desc


def _if_valid(operator: Operator, desc: Desc, field: str, change: _Change) -> Desc:
    value = desc[field]
    if value is None:
        return desc
    new = tuple(map(change, value)) if isinstance(value, tuple) else change(value)
    if new == value:
        return desc
    other = {**desc, field: new}
    return desc if violations(operator, other) else other


def _toward(tensor: TensorDesc, goal: Goal) -> TensorDesc:
    if goal.part == Part.FLAG:
        return replace(tensor, Flags=(goal.value,))
    return replace(tensor, Strides=LAYOUTS[goal.value](tensor.Sizes))


def _changed(tensor: TensorDesc, chance: Chance, *, is_input: bool) -> TensorDesc:
    layout = chance.weighted(_LAYOUTS)
    if layout != "broadcast":
        tensor = replace(tensor, Strides=LAYOUTS[layout](tensor.Sizes))
    elif is_input:
        tensor = replace(tensor, Strides=_broadcast(tensor.Sizes, chance))
    if is_input and chance.once_in(8):
        tensor = replace(tensor, Flags=("OWNED_BY_DML",))
    if chance.once_in(12):
        tensor = replace(tensor, GuaranteedBaseOffsetAlignment=chance.pick((16, 64, 256)))
    if chance.once_in(12):
        larger = tensor.MinimumTensorSizeInBytes + 4 * chance.pick((1, 3, 64))
        tensor = replace(tensor, DeclaredTensorSizeInBytes=larger)
    return tensor


def _broadcast(sizes: Sequence[int], chance: Chance) -> tuple[int, ...]:
    """Return strides: 0 in a random dimension and, by chance, in others; packed in the rest."""
    chosen = chance.below(len(sizes))
    repeated = [i == chosen or chance.once_in(4) for i in range(len(sizes))]
    stored = [1 if again else size for size, again in zip(sizes, repeated, strict=True)]
    strides = packed_strides(stored)
    return tuple(0 if again else s for s, again in zip(strides, repeated, strict=True))


def in_place_pairs(operator: Operator, desc: Desc) -> dict[str, str]:
    """Return, for outputs, the input whose buffer each may share; no input appears twice."""
    pairs: dict[str, str] = {}
    for pair in operator.in_place:
        output, source = desc[pair.output], desc[pair.input]
        if isinstance(output, TensorDesc) and isinstance(source, TensorDesc):
            owned = source.Owned
            alike = replace(source, Flags=()) == replace(output, Flags=())
            free = pair.output not in pairs and pair.input not in pairs.values()
            if alike and not owned and source.Strides is None and free:
                pairs[pair.output] = pair.input
    return pairs
