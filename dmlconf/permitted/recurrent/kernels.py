"""Simulate kernels of recurrent layers that store intermediates in FLOAT16.

DirectML stores some intermediate results of LSTM, GRU and RNN in FLOAT16. A kernel is one choice of
what is stored, and of how it is rounded; the choice depends on the version and the desc. A result
is right if it is near the result of the equations, or of a simulated kernel.

Derived in docs/bounds.md, Recurrent layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np

from dmlconf.permitted.numbers.error_scale import LONGEST_WHOLE, ErrorScale, quantum_of
from dmlconf.permitted.numbers.half import to_nearest
from dmlconf.permitted.numbers.rounding import HALF_STEP
from dmlconf.permitted.recurrent.quantity import Quantity, next_state, product_quantity, quantity_of
from dmlconf.permitted.recurrent.spread import ROUNDING, Spread
from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.numbers.half import Store
from dmlconf.reference.recurrent.values import State, Values
from dmlconf.tensors.datatypes import Array

__all__ = ["EQUATIONS", "Kernel", "Kernels", "Sites"]

Sites = frozenset[str]
"""Names of values that a kernel stores in FLOAT16. `Kernels` names `bias`, `sum`, `slice with
bias`, `sum with bias` and `state`; the equations in `dmlconf.reference.recurrent` name the others,
such as `gate`."""


_STORED_SUMS: Final = 2
"""A kernel may add a FLOAT16 product to a bias in slices of its terms, and store each sum. This is
the most sums before the last one, measured on DirectML 1.8.2 with 1,031 terms."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One way to compute a layer.

    Attributes:
        sites: the values that the kernel stores in FLOAT16; empty if it stores no intermediates.
        rounded: the function that rounds FLOAT64 values to FLOAT16 numbers, returned as FLOAT64.
    """

    sites: Sites
    rounded: Store


@dataclass(frozen=True, slots=True)
class Kernels:
    """Several kernels, simulated at once: each computes the layer in rows of its own.

    Attributes:
        dtype: the data type of the layer's tensors.
    """

    each: tuple[Kernel, ...]
    dtype: np.dtype[Any]
    _steps: Iterator[int] = field(default_factory=count, init=False, repr=False, compare=False)

    @property
    def copies(self) -> int:
        """The number of kernels, each of which computes the whole batch."""
        return len(self.each)

    def exact(self, value: Array, absent: Array | None = None) -> Quantity:
        """Return the values of an input tensor, which have no errors; `absent` as in `Values`."""
        return Quantity(value, ErrorScale(np.zeros_like(value)), absent=absent)

    def weighted(self, inputs: Array, weight: Array, biases: Sequence[Array]) -> Quantity:
        """Return the products of every step's input with the weights, plus the biases.

        The result has the sizes {steps, rows, n}. A kernel may store in FLOAT16 the products
        (`sum`), the sum of the biases (`bias`), and the products plus the biases (`sum with bias`).

        Args:
            inputs: sizes {steps, rows, inputs}.
            weight: sizes {inputs, n}.
            biases: sizes {n} each.
        """
        rows = inputs.reshape(-1, inputs.shape[2])
        value = (rows @ weight).reshape(*inputs.shape[:2], -1)
        product = product_quantity(inputs, weight, value)
        if biases and self.dtype == np.float16 and len(weight) > LONGEST_WHOLE:
            product = self._added_to_biases(product, biases)
        sums = self._held(product, "sum", self._exact_sums(inputs, weight, ()))
        if not biases:
            return sums
        exact = self._exact_sums(inputs, weight, biases)
        return self._with_bias(sums, biases, "sum with bias", exact)

    def _added_to_biases(self, product: Quantity, biases: Sequence[Array]) -> Quantity:
        """Return a product with the errors of kernels that add its slices to the biases.

        Such a kernel stores the sum after each slice but the last, as `slice with bias`. Measured
        on DirectML 1.8.2.
        """
        adding = ["slice with bias" in kernel.sites for kernel in self.each]
        if not any(adding):
            return product
        rows = np.repeat(adding, product.value.shape[-2] // self.copies)[:, np.newaxis]
        sizes = np.abs(product.value) + np.abs(sum(biases))
        return product.storing(np.where(rows, sizes, 0.0), _STORED_SUMS)

    def _exact_sums(self, inputs: Array, weight: Array, biases: Sequence[Array]) -> Array | bool:
        """Return which sums FLOAT32 adds up exactly in any order; False unless dtype is FLOAT16."""
        if self.dtype != np.float16:
            return False
        size = np.abs(inputs) @ np.abs(weight)
        quantum = quantum_of(inputs, weight)
        for bias in biases:
            size = size + np.abs(bias)
            quantum = min(quantum, quantum_of(bias)) if bias.any() else quantum
        exact: Array = size <= quantum * 2.0**24
        return exact & (quantum > 0)

    def with_bias(self, sums: Values, bias: Array, site: str) -> Quantity:
        """Return sums plus a bias; a kernel may store the bias, and the result as value `site`."""
        return self._with_bias(quantity_of(sums), [bias], site, False)

    def _with_bias(
        self, sums: Quantity, biases: Sequence[Array], site: str, exact: Array | bool
    ) -> Quantity:
        """Return sums plus biases; a kernel may add the biases one after the other.

        Measured: DirectML 1.15.4 adds the first bias to the sum, then the second. With biases of
        16777215 and -16777215, it turns a sum of -0.8 into -1.
        """
        shape = sums.value.shape
        value = np.broadcast_to(sum(biases), shape)
        size = np.broadcast_to(sum(map(np.abs, biases)), shape)
        # For biases of opposite signs, the size of the smaller one; otherwise 0.
        between = (size - np.abs(value)) / 2
        exactly = Spread.none(shape)
        spreads = exactly.widened(ROUNDING * HALF_STEP * between), exactly
        constant = Quantity(value, ErrorScale(size), spreads if between.any() else None, terms=size)
        return self._held(sums + self._held(constant, "bias", True), site, exact)

    def activated(self, sums: Values, activation: Activation) -> Quantity:
        """Return the activation of sums."""
        return quantity_of(sums).activated(activation, self.dtype)

    def held(self, values: Values, site: str) -> Quantity:
        """Return values {..., rows, n}; rows of kernels with this site are rounded to FLOAT16."""
        return self._held(quantity_of(values), site, False)

    def _held(self, quantity: Quantity, site: str, exact: Array | bool) -> Quantity:
        """Return the quantity as `held` does; `exact` marks sums without rounding errors."""
        holding = [site in kernel.sites for kernel in self.each]
        if not any(holding):
            return quantity
        rows = np.repeat(holding, quantity.value.shape[-2] // self.copies)[:, np.newaxis]
        return quantity.held(self.rounded, exact, True if all(holding) else rows)

    def carried(self, state: State, running: Array) -> State:
        """Return the state that the next step reads; kernels may store each part, as `state`."""
        return next_state(
            [quantity_of(part) for part in state], self._state, running, next(self._steps)
        )

    def _state(self, quantity: Quantity) -> Quantity:
        return self._held(quantity, "state", False)

    def undefined(self, values: Values, where: Array) -> Quantity:
        """Return the values; where `where` is true, any result is right."""
        return quantity_of(values).open_where(where)

    def rounded(self, values: Array) -> Array:
        """Return rows {..., rows, n} as each kernel stores them."""
        stored = np.empty_like(values)
        for kernel, block in zip(self.each, self.blocks(values.shape[-2]), strict=True):
            stored[..., block, :] = kernel.rounded(values[..., block, :])
        return stored

    def blocks(self, rows: int) -> list[slice]:
        """Return each kernel's slice of the rows, of which there are `rows`."""
        size = rows // self.copies
        return [slice(start, start + size) for start in range(0, rows, size)]


EQUATIONS: Final = Kernel(frozenset(), to_nearest)
"""Computes everything in FLOAT32, and stores no intermediates in FLOAT16."""
