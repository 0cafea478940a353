"""Say why two values of parameters cannot go together, such as an absent tensor and its layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dmlconf.catalogue.model import Entry, FieldKind, Operator
from dmlconf.coverage.combinations.classes import REAL_CLASSES, data_input
from dmlconf.coverage.combinations.parameters import ABSENT
from dmlconf.coverage.combinations.partial_descs import Assignment, broken_by, tied
from dmlconf.coverage.combinations.spaces import spaces_of

__all__ = ["reason"]

_LEAST: Final = {"transposed": 2, "channels-last": 3, "padded": 1}
"""The least number of dimensions that a layout needs."""

_LAYOUT: Final = "layout of "
_DATA_TYPE: Final = "data type of "


def reason(
    operator: Entry, pair: Sequence[tuple[str, str]], assigned: tuple[Assignment, ...]
) -> str | None:
    """Return why two values cannot go together in an operator's desc; None if no reason is known.

    Args:
        assigned: what these values say about a desc.
    """
    values = dict(pair)
    why = _by_definition(operator, values) if isinstance(operator, Operator) else None
    if why is not None:
        return why
    for space in spaces_of(operator):
        for each in space.excluded:
            if each.excludes(tuple(pair)):
                return each.because
    return broken_by(operator, assigned) if isinstance(operator, Operator) else None


def _by_definition(operator: Operator, values: Mapping[str, str]) -> str | None:
    for name, value in values.items():
        why = _without_layout(operator, name, value, values) if name.startswith(_LAYOUT) else None
        if why is not None:
            return why
        tensor = name.removeprefix(_DATA_TYPE)
        absent = name.startswith(_DATA_TYPE) and values.get(tensor) == ABSENT
        # A tensor that is tied to others has their data type even if it is absent.
        if absent and tied(operator, "DataType")[tensor] == (tensor,):
            return "an absent tensor has no data type"
    data = data_input(operator)
    if "data" in values and values.get(data or "") == ABSENT:
        return "an absent tensor has no data"
    why = _not_in_place(operator, values) if values.get("in place") == "true" else None
    if why is not None:
        return why
    types = (values.get(each) for each in ("data type", f"data type of {data}"))
    if values.get("data") in REAL_CLASSES and any("INT" in each for each in types if each):
        return "integers are whole and finite"
    return None


def _not_in_place(operator: Operator, values: Mapping[str, str]) -> str | None:
    sources = {pair.input for pair in operator.in_place}
    inputs = {each.name for each in operator.of_kind(FieldKind.INPUT)}
    if len(sources) == 1 and values.get(f"{_LAYOUT}{next(iter(sources))}") == "broadcast":
        return "an output in place of elements that are read twice would change them"
    if len(inputs) == 1 and values.get("owned inputs") == "some":
        return "an input that DirectML owns is not bound, and shares no buffer"
    return None


def _without_layout(
    operator: Operator, name: str, layout: str, values: Mapping[str, str]
) -> str | None:
    tensor = name.removeprefix(_LAYOUT)
    if values.get(tensor) == ABSENT:
        return "an absent tensor has no layout"
    least = _LEAST.get(layout, 1)
    rank = values.get("dimensions")
    same = next(iter(tied(operator, "DimensionCount").values()))
    if rank is not None and int(rank) < least and tensor in same:
        return f"a {layout} layout needs {least} dimensions"
    return None
