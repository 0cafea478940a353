"""Compare an output of an ONNX model with that of ONNX Runtime's CPU provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = ["OutputDifference", "output_difference"]

_TOLERANCES: Final[Mapping[int, float]] = {2: 1e-2, 4: 1e-4, 8: 1e-4}
"""How far two right providers may differ, as a share of the tensor's largest magnitude.

The key is the number of bytes of an element. Measured with 14 models: up to 1e-6 for FLOAT32, and
3e-3 for FLOAT16. FLOAT64 has the share of FLOAT32, since DirectML computes some FLOAT64 operators
in FLOAT32.
"""


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """The difference of two tensors.

    Attributes:
        text: the difference in words.
        beyond: whether it is more than two right providers may differ by.
        compared: whether the tensors could be compared.
    """

    text: str
    beyond: bool = False
    compared: bool = True


def output_difference(actual: Any, expected: Any) -> OutputDifference:
    """Compare an output with that of the CPU provider.

    Finite floating-point numbers may differ by the share in `_TOLERANCES` of the largest finite
    magnitude in the CPU provider's tensor; sizes, integers, BOOL, NaN and infinities may not. An
    output that is no tensor of numbers, such as a sequence, is not compared.
    """
    arrays = isinstance(actual, np.ndarray) and isinstance(expected, np.ndarray)
    if not arrays or actual.dtype.kind not in "fiub":
        return OutputDifference("not compared with the CPU provider", compared=False)
    if actual.shape != expected.shape:
        sizes = f"sizes {list(actual.shape)}, on the CPU provider {list(expected.shape)}"
        return OutputDifference(sizes, beyond=True)
    is_float = actual.dtype.kind == "f"
    if np.array_equal(actual, expected, equal_nan=is_float):
        same_bits = actual.dtype == expected.dtype and actual.tobytes() == expected.tobytes()
        equal = "the same bits as the CPU provider"
        return OutputDifference(equal if same_bits else "equal to the CPU provider, in other bits")
    one, other = actual.astype(np.float64), expected.astype(np.float64)
    both = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~both], other[~both], equal_nan=True):
        text = "NaN or infinity where the CPU provider has none, or the reverse"
        return OutputDifference(text, beyond=True)
    error = float(np.abs(one[both] - other[both]).max(initial=0))
    size = float(np.abs(other[both]).max(initial=0))
    text = f"at most {error:.3g} off the CPU provider, whose largest number is {size:.3g}"
    # Different integers may be the same FLOAT64, with an error of 0.
    beyond = not is_float or error > _TOLERANCES[actual.dtype.itemsize] * size
    return OutputDifference(text, beyond=beyond)
