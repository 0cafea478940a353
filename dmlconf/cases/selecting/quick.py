"""Choose few cases that together have most of the features of many.

The features of a case are read from its entry and parameters, without building it. The case with
the most missing features is chosen, then the case with the most that are still missing, and so on:

- *Demanded* features are the kind, data types, layouts, unusual data and values of attributes. The
  kind is the name of the case's file, such as `matrix`. A case is chosen only if it has a missing
  demanded feature; a single value of an attribute is not enough.
- *Wanted* features, such as a data type together with a value, or the end of a numeric range, count
  a tenth of a demanded one.

One case of an operator's `invalid.yaml` is chosen. Nothing is random. `-o` chooses the same cases
of an operator as a run of all operators, but perhaps other graphs.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from dmlconf.cases.model import INVALID_TAG, PlannedCase
from dmlconf.tensors.datatypes import DataType

__all__ = ["quick_cases"]

_COSTLY: Final = frozenset({"model", "large", "slow"})
"""Tags of cases that take long or need much memory; they are left out if there are others."""

_SIZES: Final = "sizes"
"""A kind whose entries are all demanded: each has sizes at which kernels switch to other code."""

_OF_MANY_CASES: Final = ("matrix", _SIZES)
"""Kinds whose entries stand for many cases: a FLOAT16 case is demanded of each entry with one."""

_HALF: Final = ("type", "FLOAT16")

_LAYOUT: Final = re.compile(r"(?i)layout|strides|flags|in_place|held")
"""Names of the parts of an entry that say where a tensor's elements lie."""

_WEIGHT: Final = 10
"""How many wanted features count as much as one demanded feature."""

_MOST_VALUES: Final = 64
"""How many items of a list of tensor data or parameters are searched for unusual numbers."""

_UNUSUAL: Final = ("specials", "ends")
"""Fills with numbers that kernels often get wrong."""

_MAGNITUDES: Final = (
    ("below FLOAT32", math.ulp(0.0), 2.0**-126),
    ("below FLOAT16", 2.0**-126, 2.0**-14),
    ("near the largest FLOAT16 or beyond", 2.0**15, 2.0**31),
    ("beyond 31 bits", 2.0**31, 2.0**63),
    ("beyond 63 bits", 2.0**63, math.inf),
)
"""Ranges of unusual magnitudes: a word, the least magnitude, and the end, which is excluded.

0 is in none of them: a case with a plain 0 does not take the place of one with subnormal numbers.
"""

_TYPES: Final = frozenset(DataType.__members__)

Feature = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Features:
    """The features of a case, as sets of bits.

    Attributes:
        first: the kind, data types, layouts, unusual data and, for some kinds, the entry; demanded.
        values: the values of parameters and attributes; demanded, but one alone is not enough.
        wanted: features that count less than demanded ones (`_WEIGHT`).
    """

    first: int
    values: int
    wanted: int


def quick_cases(cases: Sequence[PlannedCase]) -> list[PlannedCase]:
    """Return the cases of a quick run, in their order."""
    by_operator: dict[str, list[PlannedCase]] = {}
    for case in cases:
        by_operator.setdefault(case.template.operator_name, []).append(case)
    chosen = {id(case) for group in by_operator.values() for case in _cover(_cheap(group) or group)}
    return [case for case in cases if id(case) in chosen]


def _cheap(cases: Sequence[PlannedCase]) -> list[PlannedCase]:
    return [case for case in cases if _COSTLY.isdisjoint(case.template.tags)]


_LEAST: Final = 2
"""A case without another missing demanded feature needs this many missing `values` to be chosen."""


def _cover(cases: Sequence[PlannedCase]) -> Iterator[PlannedCase]:
    """Yield cases of an operator: each time one with the highest `_gain`."""
    distinct: dict[_Features, PlannedCase] = {}
    for case, features in zip(cases, _features(cases), strict=True):
        distinct.setdefault(features, case)
    missing_first = missing_values = missing_wanted = -1
    heap = [
        (-_gain(features, -1, -1, -1), index, features) for index, features in enumerate(distinct)
    ]
    heapq.heapify(heap)
    while heap:
        before, index, features = heapq.heappop(heap)
        first = features.first & missing_first
        values = features.values & missing_values
        gain = _gain(features, missing_first, missing_values, missing_wanted)
        if gain < -before:  # Cases chosen since have some of its features.
            if first or values:
                heapq.heappush(heap, (-gain, index, features))
            continue
        if not first and values.bit_count() < _LEAST:
            continue
        yield distinct[features]
        missing_first &= ~features.first
        missing_values &= ~features.values
        missing_wanted &= ~features.wanted


def _gain(features: _Features, first: int, values: int, wanted: int) -> int:
    demanded = (features.first & first).bit_count() + (features.values & values).bit_count()
    return _WEIGHT * demanded + (features.wanted & wanted).bit_count()


def _features(cases: Sequence[PlannedCase]) -> Iterator[_Features]:
    numbers: dict[Feature, int] = {}

    def bits(features: Iterator[Feature]) -> int:
        mask = 0
        for feature in features:
            mask |= 1 << numbers.setdefault(feature, len(numbers))
        return mask

    ends = _ends(cases)
    entries: dict[int, tuple[Feature, ...]] = {}
    for case in cases:
        template = case.template
        kind = template.tags[0]
        if kind == INVALID_TAG:
            yield _Features(bits(iter([("kind", kind)])), 0, 0)
            continue
        own = entries.get(id(template))
        if own is None:
            own = entries[id(template)] = tuple(_of_entry(template.data))
        words = [feature for feature in own if feature[0] == "value"]
        words += _of_parameters(case.parameters)
        layouts = [feature for feature in words if _LAYOUT.search(feature[1])]
        types = [feature for feature in own if feature[0] == "type"]
        data = {feature for feature in own if feature[0] == "data"}
        data.update(("data", word) for value in case.parameters.values() for word in _words(value))
        types += [
            ("type", v) for v in case.parameters.values() if isinstance(v, str) and v in _TYPES
        ]
        limits = list(_limits(case, ends))
        entry = ("entry", template.identifier)
        yield _Features(
            bits(
                chain(
                    [("kind", kind)],
                    types,
                    layouts,
                    _pairs(types, sorted(data)),
                    [("types", *types)],
                    [entry] if kind == _SIZES else [],
                    [(_HALF, entry)] if kind in _OF_MANY_CASES and _HALF in types else [],
                )
            ),
            bits(iter(words)),
            bits(chain(limits, _pairs(types, [entry, *words, *limits]))),
        )


def _pairs(types: Sequence[Feature], others: Sequence[Feature]) -> Iterator[Feature]:
    return ((one, other) for one in types for other in others)


def _of_parameters(parameters: Mapping[str, Any]) -> Iterator[Feature]:
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            value = value.get("operator")
        for word in value if isinstance(value, tuple | list) else [value]:
            if isinstance(word, str | bool):
                yield ("value", name, word)


def _of_entry(data: Mapping[str, Any]) -> Iterator[Feature]:
    if data.get("in_place"):
        yield ("value", "in_place", True)
    for name, value in (data.get("desc") or {}).items():
        tensors = value if isinstance(value, list) else [value]
        for tensor in tensors:
            if isinstance(tensor, Mapping):
                yield from _of_tensor(name, tensor)
            elif isinstance(tensor, bool) or _is_word(tensor):
                yield ("value", name, tensor)


def _of_tensor(name: str, tensor: Mapping[str, Any]) -> Iterator[Feature]:
    tensor = tensor.get("of", tensor)  # An array of tensors may be repeated.
    if tensor.get("DataType") in _TYPES:
        yield ("type", tensor["DataType"])
    if tensor.get("Strides"):
        yield ("value", f"{name}.Strides", True)
    for key in ("layout", "Flags", "operator"):
        value = tensor.get(key)
        for word in value if isinstance(value, list) else [value]:
            if _is_word(word):
                yield ("value", f"{name}.{key}", word)
    fill = tensor.get("fill")
    fill = next(iter(fill)) if isinstance(fill, Mapping) else fill
    if fill in _UNUSUAL:
        yield ("data", fill)
    yield from (("data", word) for word in _words(tensor.get("values")))


def _words(values: Any) -> Iterator[str]:
    if isinstance(values, list | tuple):
        for value in values[:_MOST_VALUES]:
            yield from _words(value)
    elif isinstance(values, float | int) and not isinstance(values, bool):
        size = abs(values)
        if math.isnan(size):
            yield "NaN"
        elif math.isinf(size):
            yield "infinity"
        elif not size and math.copysign(1, values) < 0:
            yield "-0"
        else:
            yield from (word for word, low, high in _MAGNITUDES if low <= size < high)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and not value.startswith("=")


_Ends = Mapping[tuple[Any, str], tuple[float, float]]


def _ends(cases: Sequence[PlannedCase]) -> _Ends:
    """Return the range of each numeric parameter, by entry (None for all entries) and name."""
    ends: dict[tuple[Any, str], tuple[float, float]] = {}
    for case in cases:
        for name, value in case.parameters.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                for key in ((None, name), (case.template.identifier, name)):
                    low, high = ends.get(key, (value, value))
                    ends[key] = min(low, value), max(high, value)
    return ends


def _limits(case: PlannedCase, ends: _Ends) -> Iterator[Feature]:
    """Yield features of the parameters that are at an end of their range."""
    for name, value in case.parameters.items():
        for key in (None, case.template.identifier):
            low, high = ends.get((key, name), (None, None))
            if low != high and value in (low, high) and not isinstance(value, bool):
                if value == high:
                    yield ("end", key, name, True)
                    yield ("high", key, name)
                elif key is None:
                    yield ("end", key, name, False)
