"""Permitted errors of FOLD.

Derived in docs/bounds.md, Sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of
from dmlconf.permitted.numbers.rounding import finite_sizes, overflows
from dmlconf.reference.fields import of_fields
from dmlconf.reference.windows.folding import FoldDesc, folded

__all__ = [
    "fold_error_scale",
]


@of_fields(FoldDesc)
def fold_error_scale(desc: FoldDesc) -> ErrorScale:
    """Return the error scale: the sums of the absolute values.

    Derived in docs/bounds.md, Sums.
    """
    with np.errstate(all="ignore"):
        terms = desc.InputTensor.astype(np.float64)
        sums = folded(desc, np.abs(terms))
        scale = ErrorScale(sums, quantum=quantum_of(desc.InputTensor))
        dtype = desc.InputTensor.dtype
        if dtype.kind != "f":
            return scale
        finite = folded(desc, finite_sizes(desc.InputTensor))
        if not overflows(finite, dtype).any():
            return scale
        by_sign = folded(desc, np.minimum(terms, 0)), folded(desc, np.maximum(terms, 0))
        beyond = overflows(finite) & ~np.isnan(sums)
        return replace(scale.overflowing_where(beyond), by_sign=by_sign)
