"""A fault of VALUE_SCALE_2D: it adds its biases by a matrix product."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.reference.evaluation import evaluate

__all__ = ["bias_by_a_product"]


def bias_by_a_product(case: Case) -> Computed | None:
    """Return VALUE_SCALE_2D's outputs if each channel also adds 0 times each other bias.

    An infinite or NaN bias then makes all other channels NaN. None if all biases are finite.
    """
    biases = np.array(case.desc["Bias"], np.float64)
    if np.isfinite(biases).all():
        return None
    with np.errstate(invalid="ignore"):
        added = [float((np.eye(len(biases))[at] * biases).sum()) for at in range(len(biases))]
    wrong = replace(case, desc={**case.desc, "Bias": tuple(added)})
    return Computed(evaluate(wrong), around=wrong)
