"""How far a device's own functions may be off, which operators are made of.

Source: Direct3D 11.3 functional specification, 22.10 (exp, log); for erf, Abramowitz and Stegun,
7.1.26.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP

__all__ = ["ERF_ERROR", "EXP2_ERROR", "EXP2_HALVES", "LOG2_ERROR", "LOG2_E_ERROR"]

EXP2_ERROR: Final = 2.0**-21
"""The relative error of exp2."""

EXP2_HALVES: Final = EXP2_ERROR / (STEP / 2)
"""The same, 8, in half ULPs of FLOAT32, which the rule `accumulate` counts in."""

LOG2_ERROR: Final = 2.0**-21
"""The error of log2: relative, but absolute for results below 1."""

LOG2_E_ERROR: Final = abs(float(np.float32(np.log2(np.e))) / float(np.log2(np.e)) - 1)
"""The relative error of the FLOAT32 constant that makes exp2 an exp."""

ERF_ERROR: Final = 2.0**-20
"""The absolute error of a polynomial for erf, 1.5e-7, of the exp that it is times, 2^-21, and of
five FLOAT32 operations.

Source: Abramowitz and Stegun, 7.1.26; Direct3D 11.3 functional specification, 22.10.
"""
