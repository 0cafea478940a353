"""Generate data for the inputs of captured cases, and read the descs of their entries.

Floating-point inputs get numbers from -1 to 1, scales and variances from 0.25 to 1. Indices are
within their bounds. Other integers are from 0 to 9, of INT4 from 0 to 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.building.attributes import read_attribute, set_counts
from dmlconf.cases.building.files import CaseFiles
from dmlconf.cases.building.tensor_entry import read_tensor
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import Field, Operator
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.indices import indices_of

__all__ = ["desc_of", "input_data"]

_POSITIVE: Final = ("Scale", "Variance")
"""Floating-point inputs with one of these words in their names get numbers above 0."""

_MOST_INTEGER: Final = 9
_NOT_DESC: Final = ("from", "values", "fill")


def input_data(
    operator: Operator, desc: Desc, field: Field, tensor: TensorDesc, seed: int
) -> Mapping[str, Any]:
    """Return an input's data as in a case file: a fill with a seed, or indices."""
    if not tensor.DataType.is_float:
        if field.bounds is not None:
            return indices_of(operator, desc, field, tensor, Chance("capture", seed))
        high = min(_MOST_INTEGER, int(tensor.DataType.maximum))
        return {"fill": {"integers": {"low": 0, "high": high, "seed": seed}}}
    low = 0.25 if any(part in field.name for part in _POSITIVE) else -1
    return {"fill": {"uniform": {"low": low, "high": 1, "seed": seed}}}


def desc_of(operator: Operator, entry: Mapping[str, Any]) -> Desc:
    """Return the desc in an entry of a case file, without data and sources.

    Args:
        entry: the `desc` of a case or a node, without expressions and with each tensor in full.

    Raises:
        CaseError: the entry does not describe the operator.
    """
    files, where = CaseFiles(Path()), ("desc",)
    desc: dict[str, Any] = {}

    def tensor(value: Mapping[str, Any]) -> TensorDesc:
        own = {key: item for key, item in value.items() if key not in _NOT_DESC}
        return read_tensor(own, "", {}, files, where)

    for field in operator.fields:
        value = entry.get(field.name)
        if value is None:
            desc[field.name] = None
        elif not field.is_tensor:
            desc[field.name] = read_attribute(field, value, where)
        elif field.is_array:
            desc[field.name] = tuple(tensor(item) for item in value)
        else:
            desc[field.name] = tensor(value)
    set_counts(operator, desc)
    return desc
