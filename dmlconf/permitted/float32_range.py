"""Compute the reference's formulas with the range of FLOAT32 for all intermediates.

The reference computes in FLOAT64, in which (3e38 + 3e38) * 0.01 is 6e36, and 1e-30 * 1e-30 * 1e30
is 1e-30. A kernel that computes the page's formula in FLOAT32 gets infinity and 0, which is right
too.

Here the operands and results of sums, differences, products and quotients are limited. A size above
the largest FLOAT32 number becomes infinite, and a size below the least normal number becomes 0. The
sign stays, and digits are not rounded. The partial sums inside a long sum or a matrix product are
not limited.

Source: Direct3D 11.3 functional specification, 3.1: results that overflow are infinite, and
subnormal ones are flushed to 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.loader import family_of
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32, LEAST_NORMAL_FLOAT32

__all__ = ["outputs_in_float32_range"]

_FAMILIES: Final = ("normalization.", "recurrent.", "training")
"""Families of operators whose formulas have several steps."""

_ARITHMETIC: Final = frozenset(
    {
        np.add,
        np.divide,
        np.matmul,
        np.multiply,
        np.reciprocal,
        np.square,
        np.subtract,
    }
)
"""The functions that are limited to the range. Others, such as exp, are not: kernels compute
log(1 + exp(x)) without an overflow."""


def outputs_in_float32_range(case: Case, right: Mapping[str, Array]) -> dict[str, Array] | None:
    """Return the right outputs, changed where the range changes what is infinite, NaN or 0.

    None for graphs, for operators of other families than `_FAMILIES`, and if no element changes.

    Args:
        right: the outputs as the reference computes them.
    """
    if case.nodes or not family_of(case.operator).startswith(_FAMILIES):
        return None
    inputs = {
        name: array.view(_InRange) if array.dtype.kind == "f" else array
        for name, array in case.inputs().items()
    }
    limited = {name: np.asarray(array) for name, array in evaluate(case, inputs).items()}
    outputs, differs = {}, False
    for name, values in right.items():
        changed = _special(limited[name]) != _special(values)
        changed |= _special(values) & ~_same(values, limited[name])
        differs |= bool(changed.any())
        outputs[name] = np.where(changed, limited[name], values)
    return outputs if differs else None


def _special(values: Array) -> Array:
    special: Array = ~np.isfinite(values) | (values == 0)
    return special


def _same(one: Array, other: Array) -> Array:
    same: Array = (one == other) | (np.isnan(one) & np.isnan(other))
    return same


class _InRange(np.ndarray[Any, np.dtype[Any]]):
    """An array whose FLOAT64 results of arithmetic are limited to the range of FLOAT32."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: Any, *inputs: Any, out: Any = None, **keywords: Any
    ) -> Any:
        arithmetic = ufunc in _ARITHMETIC
        plain = [_limited(_plain(each)) if arithmetic else _plain(each) for each in inputs]
        if "where" in keywords:
            keywords["where"] = _plain(keywords["where"])
        if out is not None:
            keywords["out"] = tuple(map(_plain, out))
        results = getattr(ufunc, method)(*plain, **keywords)
        if not arithmetic:
            return out[0] if out is not None and len(out) == 1 else _wrapped(results)
        if out is None:
            return _wrapped(_limited(results))
        for each in map(_plain, out):
            each[...] = _limited(each)
        return out[0]

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _wrapped(super().__array_function__(func, types, args, kwargs))


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, _InRange) else value


def _limited(values: Any) -> Any:
    """Return FLOAT64 values limited to the range of FLOAT32; values of other types stay."""
    if not isinstance(values, np.ndarray | np.generic) or values.dtype != np.float64:
        return values
    size = np.abs(values)
    kept = np.where(size < LEAST_NORMAL_FLOAT32, np.copysign(0.0, values), values)
    return np.where(size > LARGEST_FLOAT32, np.copysign(np.inf, values), kept)


def _wrapped(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_wrapped, result))
    if isinstance(result, list):
        return [_wrapped(each) for each in result]
    if isinstance(result, np.ndarray | np.generic) and result.dtype == np.float64:
        return np.asarray(result).view(_InRange)
    return result
