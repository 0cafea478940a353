"""FLOAT16 intermediates in kernels of recurrent layers.

DirectML computes a step of LSTM, GRU and RNN by several operators, and FLOAT16 holds what some of
them give. Which ones differs by operator and version. Each version is known well enough to simulate
it: all but a few elements of a thousand come out to the bit. So a result is right if it is near
that of the equations, or near that of one of these kernels. How near follows from the simulation
too: a store forgets the errors before it, unless they reach across a boundary.

Derived in docs/bounds.md, Recurrent layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.reference.numbers.half import Store, to_nearest
from dmlconf.reference.numbers.quantity import Quantity
from dmlconf.tensors.datatypes import Array

__all__ = ["EXACT", "Kernel", "Kernels", "Sites"]

Sites = frozenset[str]
"""Names of values in a layer's equations."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a layer is computed.

    Attributes:
        sites: the values that FLOAT16 holds; of FLOAT32 tensors none.
        rounded: gives the FLOAT16 numbers that are stored, FLOAT64.
    """

    sites: Sites
    rounded: Store


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels that compute a layer side by side, each in its own rows, one after the other.

    Tensors of recurrent layers are small, so all kernels take hardly longer than one.

    Attributes:
        each: the kernels; one at least.
    """

    each: tuple[Kernel, ...]

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.each)

    def held(self, quantity: Quantity, site: str, exact: Array | bool = False) -> Quantity:
        """Return a value as the next operation reads it.

        Args:
            quantity: the value, sizes {..., rows, n}.
            site: its name.
            exact: where every order of computing makes exactly these values.
        """
        holding = [site in kernel.sites for kernel in self.each]
        if not any(holding):
            return quantity
        rows = np.repeat(holding, quantity.value.shape[-2] // self.count)[:, np.newaxis]
        return quantity.held(self.rounded, exact, True if all(holding) else rows)

    def rounded(self, values: Array) -> Array:
        """Return what each kernel stores of its rows {..., rows, n}."""
        stored = np.empty_like(values)
        for kernel, block in zip(self.each, self.blocks(values.shape[-2]), strict=True):
            stored[..., block, :] = kernel.rounded(values[..., block, :])
        return stored

    def blocks(self, rows: int) -> list[slice]:
        """Return which of so many rows belong to each kernel."""
        size = rows // self.count
        return [slice(start, start + size) for start in range(0, rows, size)]

    def with_bias(
        self, sums: Quantity, bias: Array, exact: Array | bool = False, site: str = "sum with bias"
    ) -> Quantity:
        """Return sums with a bias, which is held as `bias`, as is the result by its own name.

        Args:
            sums: sizes {..., rows, n}.
            bias: n numbers.
            exact: where every order of adding up makes the same sums.
            site: the name of the result.
        """
        value = np.broadcast_to(bias, sums.value.shape)
        constant = Quantity.constant(value, sums.error_scale is not None)
        return self.held(sums + self.held(constant, "bias", exact=True), site, exact)


EXACT: Final = Kernels((Kernel(frozenset(), to_nearest),))
"""Computes all in FLOAT32, and stores no more than the outputs."""
