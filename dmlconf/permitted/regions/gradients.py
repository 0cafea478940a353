"""What the gradients of ROI_ALIGN may be besides the reference's outputs.

Derived in docs/bounds.md, Gradients of regions of interest.
"""

from __future__ import annotations

import numpy as np

from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.rounding import anything_where, rounded_interval
from dmlconf.reference.regions.gradients import RoiAlignGradDesc, gradient_problem
from dmlconf.tensors.datatypes import Array

__all__ = [
    "roi_align_grad_interval",
]


@of_fields(RoiAlignGradDesc)
def roi_align_grad_interval(desc: RoiAlignGradDesc) -> tuple[tuple[Array, Array], ...]:
    """Return the least and the greatest right values of what `roi_align_grad` returns."""
    outputs = desc.OutputGradientTensor, desc.OutputROIGradientTensor
    intervals = []
    with np.errstate(all="ignore"):
        problem = gradient_problem(desc)
        gradients = problem.input_gradient, problem.region_gradient
        errors = problem.input_errors, problem.region_errors
        for gradient, error, output in zip(gradients, errors, outputs, strict=True):
            if output is not None:
                values, below, above = (
                    part.reshape(output.Sizes) for part in (gradient(), *error())
                )
                dtype = output.DataType.dtype
                ends = (
                    rounded_interval(values, below, dtype)[0],
                    rounded_interval(values, above, dtype)[1],
                )
                intervals.append(anything_where(np.isinf(below), ends))
    return tuple(intervals)
