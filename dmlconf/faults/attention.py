"""A fault of MULTIHEAD_ATTENTION: RelativePositionBiasTensor makes it divide the mask by Scale."""

from __future__ import annotations

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.float_limits import LEAST_NORMAL_FLOAT32

__all__ = ["mask_divided_by_scale"]

_OUTPUT = "OutputTensor"


@of_operators("MULTIHEAD_ATTENTION", "MULTIHEAD_ATTENTION1")
def mask_divided_by_scale(case: Case) -> Computed | None:
    """Return NaN for a BOOLEAN mask, RelativePositionBiasTensor and a Scale that is 0 or subnormal.

    A score is Scale * (product + bias + mask / Scale), and a subnormal Scale counts as 0. None for
    all other cases.
    """
    desc = case.desc
    if desc["MaskType"] != "BOOLEAN" or desc["RelativePositionBiasTensor"] is None:
        return None
    if abs(single(desc["Scale"])) >= LEAST_NORMAL_FLOAT32:
        return None
    outputs = evaluate(case)
    return Computed({**outputs, _OUTPUT: np.full_like(outputs[_OUTPUT], np.nan)})
