"""VALUE_SCALE_2D, whose bias is a product with zeros and ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.reference.evaluation import evaluate

__all__ = ["bias_by_a_product"]


def bias_by_a_product(case: Case) -> Computed | None:
    """Return the outputs of VALUE_SCALE_2D if each channel adds all biases, the others times 0.

    An infinite bias or NaN times 0 is NaN, so one of them makes every other channel NaN.
    """
    biases = np.array(case.desc["Bias"], np.float64)
    if np.isfinite(biases).all():
        return None
    with np.errstate(invalid="ignore"):
        added = [float((np.eye(len(biases))[at] * biases).sum()) for at in range(len(biases))]
    wrong = replace(case, desc={**case.desc, "Bias": tuple(added)})
    return Computed(evaluate(wrong), around=wrong)
