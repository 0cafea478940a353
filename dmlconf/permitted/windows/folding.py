"""Permitted errors of FOLD.

Derived in docs/bounds.md, Sums.
"""

from __future__ import annotations

import numpy as np

from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of
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
        wide = np.abs(desc.InputTensor.astype(np.float64))
        sums = folded(desc, wide)
    return ErrorScale(sums, quantum=quantum_of(desc.InputTensor))
