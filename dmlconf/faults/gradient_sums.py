"""Faults of batch normalization's FLOAT16 gradients: sums are computed in passes.

The result of each pass, as in `first_pass_truncated`, is truncated to FLOAT16.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.faults.passes import Combine, combinations_in_passes
from dmlconf.permitted.numbers.half import toward_zero
from dmlconf.precision.allowance import SumErrors
from dmlconf.reference.normalization.parameters import shared_dimensions
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = ["gradient_of_bias_in_passes", "gradients_in_passes"]

_INPUTS: Final = ("Input", "InputGradient", "Mean", "Variance", "Scale")


def gradients_in_passes(case: Case) -> Computed | None:
    """Return the gradients if the sums for the bias and for the scale are computed in passes.

    None if the tensors are not FLOAT16, or if one pass is enough.
    """
    return _computed(case, both=True)


def gradient_of_bias_in_passes(case: Case) -> Computed | None:
    """Return the gradients if the sum for the bias is computed in passes.

    In training, the gradient of the input may use this sum or one without passes. The sum for the
    scale may be truncated to FLOAT16. None as for `gradients_in_passes`.
    """
    return _computed(case, both=False)


@np.errstate(all="ignore")
def _computed(case: Case, *, both: bool) -> Computed | None:
    # Measured on DirectML 1.9.0: the layout of the output decides on the passes.
    tensor, inputs = case.desc["OutputGradientTensor"], case.inputs()
    over = shared_dimensions(inputs["ScaleTensor"])
    if inputs["InputGradientTensor"].dtype != np.float16:
        return None
    values = [inputs[f"{name}Tensor"].astype(np.float64) for name in _INPUTS]
    sums = combinations_in_passes(tensor, over, np.sum)
    if not sums:
        return None

    def whole(values: Array) -> Array:
        total: Array = values.sum(over, keepdims=True)
        return total

    def truncated(values: Array) -> Array:
        return toward_zero(whole(values))

    def each() -> Iterator[Computed]:
        for summed in sums:
            yield _gradients(case, values, summed if both else whole, summed, summed)
            if not both:
                yield _gradients(case, values, whole, summed, whole)
                yield _gradients(case, values, truncated, summed, summed)

    return replace(next(each()), others=lambda: islice(each(), 1, None))


@np.errstate(all="ignore")
def _gradients(
    case: Case,
    inputs: Sequence[Array],
    for_scale: Combine,
    for_bias: Combine,
    for_mean: Combine,
) -> Computed:
    """Return the gradients, given three functions that add up elements.

    Args:
        inputs: the tensors of `_INPUTS`, FLOAT64.
        for_mean: adds up the input gradients for their mean, which only training subtracts.
    """
    values, gradient, mean, variance, scale = inputs
    centred, root = values - mean, np.sqrt(variance + single(case.desc["Epsilon"]))
    sums, total = for_scale(gradient * centred), for_bias(gradient)
    sizes = for_scale(np.abs(gradient) * (np.abs(values) + np.abs(mean)))
    total_size = for_bias(np.abs(gradient))
    of_input, of_input_size = gradient, np.abs(gradient)
    if case.operator_name == "BATCH_NORMALIZATION_TRAINING_GRAD":
        count = values.size // total.size
        change = centred / (count * np.square(root))
        of_input = gradient - for_mean(gradient) / count - sums * change
        of_input_size = of_input_size + total_size / count + sizes * np.abs(change)
    outputs = {
        "OutputGradientTensor": of_input * scale / root,
        "OutputScaleGradientTensor": sums / root,
        "OutputBiasGradientTensor": total,
    }
    return Computed(
        {name: toward_zero(output).astype(np.float16) for name, output in outputs.items()},
        terms={
            "OutputGradientTensor": SumErrors(of_input_size * np.abs(scale) / root),
            "OutputScaleGradientTensor": SumErrors(sizes / root),
            "OutputBiasGradientTensor": SumErrors(total_size),
        },
    )
