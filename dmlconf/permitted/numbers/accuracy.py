"""Errors of exp2, log2, erf and log2(e), from which kernels compute functions such as sigmoid.

Source: Direct3D 11.3 functional specification, 22.10 (exp, log); for erf, Abramowitz and Stegun,
7.1.26.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP

__all__ = ["ERF_ERROR", "EXP2_ERROR", "EXP2_HALVES", "LOG2_ERROR", "LOG2_E_ERROR"]

EXP2_ERROR: Final = 2.0**-21
"""The relative error of exp2: 2^0.5 = 1.41421 may come out as 1.41421 +- 0.0000007."""

EXP2_HALVES: Final = EXP2_ERROR / (STEP / 2)
"""EXP2_ERROR in half ULPs of FLOAT32, which are the unit of the rule `accumulate`: 8."""

LOG2_ERROR: Final = 2.0**-21
"""The error of log2: relative for results of size 1 or more, absolute for smaller ones."""

LOG2_E_ERROR: Final = abs(float(np.float32(np.log2(np.e))) / float(np.log2(np.e)) - 1)
"""The relative error of log2(e) in FLOAT32: kernels compute exp(x) as exp2(log2(e) * x)."""

ERF_ERROR: Final = 2.0**-20
"""The absolute error of erf(x) = 1 - p(x) * exp(-x^2): the errors of the polynomial p, 1.5e-7, and
of exp, 2^-21, and five roundings of FLOAT32."""
