"""Limits of FLOAT32 and FLOAT16."""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = [
    "FLOAT16_EPSILON",
    "LARGEST_FLOAT16",
    "LARGEST_FLOAT32",
    "LEAST_NORMAL_FLOAT16",
    "LEAST_NORMAL_FLOAT32",
    "LEAST_SUBNORMAL_FLOAT16",
    "LEAST_SUBNORMAL_FLOAT32",
]

LARGEST_FLOAT32: Final = float(np.finfo(np.float32).max)
"""The largest finite FLOAT32 number, 3.4e38."""

LARGEST_FLOAT16: Final = float(np.finfo(np.float16).max)
"""The largest finite FLOAT16 number, 65504."""

LEAST_NORMAL_FLOAT32: Final = float(np.finfo(np.float32).tiny)
"""The least positive FLOAT32 number that is not subnormal, 2^-126."""

LEAST_SUBNORMAL_FLOAT32: Final = float(np.finfo(np.float32).smallest_subnormal)
"""The least positive FLOAT32 number, 2^-149."""

LEAST_NORMAL_FLOAT16: Final = float(np.finfo(np.float16).tiny)
"""The least positive FLOAT16 number that is not subnormal, 2^-14."""

LEAST_SUBNORMAL_FLOAT16: Final = float(np.finfo(np.float16).smallest_subnormal)
"""The least positive FLOAT16 number, 2^-24."""

FLOAT16_EPSILON: Final = 2.0**-10
"""The distance from 1 to the next FLOAT16 number, 2^-10."""
