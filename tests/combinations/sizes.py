"""Sizes of each class in `schemas/combinations/common.yaml`, in the order to try them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["SIZES"]

SIZES: Final[Mapping[str, tuple[int, ...]]] = {
    "1": (1,),
    "prime": (7, 5, 11),
    "tile - 1": (31, 15),
    "tile": (32, 16),
    "tile + 1": (33, 17),
    "large": (1031,),
    "several": (3, 2),
}
