"""Docstrings of reference functions begin with the tensors, their sizes and their data types.

The tested code is in the modules of `dmlconf/reference/` that hold functions of operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby, pairwise

from dmlconf.catalogue.loader import operator
from dmlconf.catalogue.model import Field, FieldKind, Operator
from dmlconf.catalogue.support import data_types_of
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import DataType
from tests.each import for_each
from tests.reference.functions import WITH_OWN_FUNCTIONS

TENSOR = re.compile(r"\w+ \{\w[^{}]*\}|\[\w+ \{\w[^{}]*\}\]")
"""A tensor with its sizes, such as `InputTensor {N, C, ...}`; optional ones are in brackets."""


def spelled(data_types: Iterable[DataType]) -> str:
    """Return data types: floats, then integers, widest first; three or more as `INT64 to INT16`."""
    widest_first = sorted(data_types, key=lambda t: ("fiu".index(t.dtype.kind), -t.bits))
    parts = []
    for _, kind in groupby(widest_first, lambda t: t.dtype.kind):
        names = list(kind)
        if len(names) > 2 and all(a.bits == 2 * b.bits for a, b in pairwise(names)):
            parts.append(f"{names[0]} to {names[-1]}")
        else:
            parts.extend(map(str, names))
    return ", ".join(parts)


def tensors(entry: Operator, kind: FieldKind) -> list[str]:
    return [f"[{f.name}]" if f.optional else f.name for f in entry.of_kind(kind)]


def types_by_tensor(entry: Operator) -> list[str]:
    """Return the types of the first output, then the tensors that have other types, with these."""
    output = next(iter(entry.of_kind(FieldKind.OUTPUT)))
    first = frozenset(data_types_of(entry, output.name))
    others: dict[frozenset[DataType], list[Field]] = {}
    for field in entry.fields:
        if field.is_tensor and (types := frozenset(data_types_of(entry, field.name))) != first:
            others.setdefault(types, []).append(field)
    named = [
        f"{', '.join(field.name for field in fields)}: {spelled(types)}"
        for types, fields in others.items()
    ]
    return [spelled(first), *named]


@for_each(WITH_OWN_FUNCTIONS)
def test_docstring_begins_with_tensors_sizes_and_data_types(name: str) -> None:
    entry = operator(name)
    beginning = (reference_function(name).__doc__ or "").split("\n\n")[0]
    shapes, *types = " ".join(beginning.split()).split("; ")
    inputs, arrow, outputs = shapes.partition("-> ")
    assert arrow
    for part, kind in ((inputs.strip(), FieldKind.INPUT), (outputs, FieldKind.OUTPUT)):
        assert re.sub(r" \{[^{}]*\}", "", part) == ", ".join(tensors(entry, kind))
        assert len(TENSOR.findall(part)) == len(tensors(entry, kind))
    assert types == types_by_tensor(entry)
