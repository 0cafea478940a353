"""A fault of mean-variance normalization: an element is used in place of its variance."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import Desc
from dmlconf.faults.computed import Computed
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.numbers.floats import single

__all__ = ["axes_of_mean", "divides_by_root", "element_in_place_of_its_variance"]


def element_in_place_of_its_variance(case: Case) -> Computed | None:
    """Return the outputs of a normalization along axes of one element.

    Differences from the mean are divided by sqrt(element + Epsilon), not by sqrt(0 + Epsilon). With
    an Epsilon of 0.5, -3 becomes 0 / sqrt(-2.5), NaN. None for an Epsilon of 0, and for a positive
    one if no finite element is at most -Epsilon.
    """
    desc, inputs = case.desc, case.inputs()
    tensor = inputs["InputTensor"]
    if math.prod(tensor.shape[axis] for axis in axes_of_mean(desc)) > 1 or not divides_by_root(
        desc
    ):
        return None
    epsilon = single(desc["Epsilon"])
    without_root = np.isfinite(tensor) & (tensor.astype(np.float64) + epsilon <= 0)
    if epsilon == 0 or (epsilon > 0 and not without_root.any()):
        return None  # If Epsilon is 0, the right result is 0 / 0.
    inputs["InputTensor"] = np.where(without_root, np.nan, tensor).astype(tensor.dtype)
    # Elsewhere 0 is divided by a root, and any root gives 0.
    wrong = replace(case, desc={**desc, "Epsilon": 1.0}).with_data(inputs)
    return Computed(evaluate(wrong), around=wrong)


def axes_of_mean(desc: Desc) -> set[int]:
    """Return the axes along which a normalization or REDUCE combines elements."""
    if "Axes" in desc:
        return set(desc["Axes"])
    if "OutputMeanTensor" in desc:
        return {axis for axis, size in enumerate(desc["ScaleTensor"].Sizes) if size == 1}
    return set(range(1 if desc["CrossChannel"] else 2, desc["InputTensor"].DimensionCount))


def divides_by_root(desc: Desc) -> bool:
    """Return whether the difference from the mean is divided by a root."""
    if "NormalizeVariance" in desc:
        return bool(desc["NormalizeVariance"])
    return bool(desc["UseMean"] and desc["UseVariance"])
