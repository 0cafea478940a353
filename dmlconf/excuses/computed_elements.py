"""Find the elements at which a runtime returned what a deviation's or finding's formula gives."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dmlconf.faults.prediction import Prediction
from dmlconf.tensors.datatypes import Array, bits_of

__all__ = ["computed_elements"]


def computed_elements(
    predicted: Iterable[Prediction],
    output: str,
    actual: Array,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> Array:
    """Return a mask of the elements that equal a prediction, in every bit or within an error.

    All NaN are equal. The mask includes elements that a prediction leaves unknown.

    Args:
        predicted: the possible outputs of a formula.
        actual: the runtime's output of this name.
        relative: the permitted error as a share of the predicted number.
        absolute: an error that is added to the relative one.
    """
    mask = np.zeros(actual.shape, bool)
    for prediction in predicted:
        computed = prediction.outputs[output]
        mask |= bits_of(actual) == bits_of(computed)
        mask |= prediction.unknown.get(output, False)
        if actual.dtype.kind == "f":
            mask |= np.isnan(actual) & np.isnan(computed)
        if relative or absolute:
            with np.errstate(invalid="ignore"):
                limit = absolute + relative * np.abs(computed.astype(np.float64))
                near = _difference(actual, computed) <= limit
            mask |= near & np.isfinite(computed)  # An infinite limit permits every number.
    return mask


def _difference(actual: Array, computed: Array) -> Array:
    """Return how far numbers are apart: in FLOAT64, or for integers exactly in UINT64."""
    if actual.dtype.kind == "f":
        return np.abs(actual.astype(np.float64) - computed.astype(np.float64))
    high, low = np.maximum(actual, computed), np.minimum(actual, computed)
    return high.astype(np.uint64) - low.astype(np.uint64)
