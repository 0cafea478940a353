"""Tell whether a case has changed since it was recorded: by its digest, or by its outputs.

The digest is the same on every platform, and with every version of Python and NumPy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any, Final

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample, little_endian

__all__ = ["case_digest", "outputs_problem"]

_MEMBERS: Final = tuple(TensorDesc.__dataclass_fields__)
_EXACT: Final = 1 << 53
"""FLOAT64 has every integer below this magnitude."""

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def case_digest(case: Case) -> str:
    """Return the SHA-256 of operator, desc or graph, `in_place` and inputs' data, in hexadecimal.

    If the case expects a rejection, the data is left out, since it may be too large for any memory.
    """
    head = {
        "operator": case.operator_name,
        "desc": _canonical(case.content),
        "in_place": _canonical(case.in_place),
    }
    digest = sha256(_CANONICAL.encode(head).encode())
    if not isinstance(case.expectation, ExpectedRejection):
        for name, array in case.inputs().items():
            digest.update(f"\0{name} {_dtype_name(array.dtype)} {list(array.shape)}\0".encode())
            digest.update(little_endian(array))
    return digest.hexdigest()


@cache
def _dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the dtype's name, which NumPy computes at each access."""
    return dtype.name


def outputs_problem(case: Case, outputs: Outputs) -> str | None:
    """Return how outputs differ from the desc in names, dtype or shape; None if they do not."""
    descs = case.outputs()
    recorded: dict[str, Array | Sample] = {**outputs.samples, **outputs.arrays}
    if recorded.keys() != descs.keys():
        return f"outputs {', '.join(recorded) or 'none'}, not {', '.join(descs)}"
    for name, array in recorded.items():
        dtype, sizes = descs[name].DataType.dtype, descs[name].Sizes
        if array.dtype != dtype or array.shape != sizes:
            return f"{name} is {array.dtype} {list(array.shape)}, not {dtype} {list(sizes)}"
    return None


def _canonical(value: Any) -> Any:
    if value is None or type(value) is int:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple | list):
        return [_canonical(item) for item in value]
    if isinstance(value, TensorDesc):
        return _canonical_tensor(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    return int(value)


@lru_cache(maxsize=4096)
def _canonical_tensor(tensor: TensorDesc) -> Mapping[str, Any]:
    return {name: _canonical(getattr(tensor, name)) for name in _MEMBERS}


def _number(value: float) -> int | str:
    """Spell 1.0 as 1, since case files may use either; spell other floats in hexadecimal."""
    negative_zero = value == 0 and math.copysign(1, value) < 0
    if value.is_integer() and abs(value) < _EXACT and not negative_zero:
        return int(value)
    return value.hex()
