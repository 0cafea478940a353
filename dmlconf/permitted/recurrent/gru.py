"""Permitted errors of GRU, and the values that its kernels store in FLOAT16."""

from __future__ import annotations

from typing import Final

from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.recurrent.kernels import Sites
from dmlconf.permitted.recurrent.layers import error_scales
from dmlconf.reference.fields import of_fields
from dmlconf.reference.recurrent.gru import GruDesc, gru_direction
from dmlconf.reference.recurrent.layers import Direction

__all__ = [
    "error_scales_of_kernels",
    "gru_error_scale",
]

_NEWER: Final[Sites] = frozenset({"sum", "product", "product of h", "state"})
"""What DirectML 1.13.1 and 1.15.4 store in FLOAT16 with LinearBeforeReset: matrix products and
states.

Measured: a simulation gives the bits of 2,129 of 2,132 recorded elements."""

_NEWER_RESET_FIRST: Final[Sites] = _NEWER | {"gate", "reset state"}
"""What these versions store without LinearBeforeReset: gates and the reset state as well."""

_OLDER_RESET_FIRST: Final[Sites] = _NEWER_RESET_FIRST | {"bias", "sum with bias"}
"""What DirectML 1.8.0 stores without LinearBeforeReset: biases and sums with biases as well."""

_OLDER: Final[Sites] = _OLDER_RESET_FIRST | {"product with bias", "reset product", "sum of h"}
"""What DirectML 1.8.0 stores with LinearBeforeReset."""

_OLDER_OF_ONE_NODE: Final[Sites] = (_OLDER - {"sum", "product of h"}) | {"slice with bias"}
_OLDER_OF_ONE_NODE_RESET_FIRST: Final[Sites] = (_OLDER_RESET_FIRST - {"sum"}) | {"slice with bias"}
"""What DirectML 1.8.0 and 1.8.2 store if there is one hidden node, with and without
LinearBeforeReset. They do not store a product before a bias is added to it. Measured: the
simulations give the bits of all 774 elements of cases with up to 5 inputs."""

_EVERYTHING: Final[Sites] = _OLDER | {"sum of gates", "share"}
"""Every value with a name but `slice with bias`. No measured release stores them all."""


@of_fields(GruDesc)
def gru_error_scale(desc: GruDesc) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs of `gru`, for the same arguments.

    Derived in docs/bounds.md, Recurrent layers.
    """
    return error_scales_of_kernels(desc, gru_direction)


def error_scales_of_kernels(desc: GruDesc, direction: Direction[GruDesc]) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs that a desc has."""
    kernel_sites: tuple[Sites, ...]
    if desc.LinearBeforeReset:
        kernel_sites = (_NEWER, _NEWER | {"gate"}, _OLDER, _EVERYTHING)
        of_one_node = _OLDER_OF_ONE_NODE
    else:
        kernel_sites = (_NEWER_RESET_FIRST, _OLDER_RESET_FIRST, _EVERYTHING)
        of_one_node = _OLDER_OF_ONE_NODE_RESET_FIRST
    if desc.RecurrenceTensor.shape[-1] == 1:
        kernel_sites += (of_one_node,)
    return error_scales(desc, direction, kernel_sites, biases=2)
