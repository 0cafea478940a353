"""The arithmetic of a recurrent layer's equations: FLOAT64 here, with errors in `permitted`.

The equations compute with `Values` and name those that a kernel might store in FLOAT16, such as
"gate". Nothing is rounded here. In `dmlconf.permitted.recurrent`, values carry their errors, and
some are rounded to FLOAT16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from dmlconf.reference.activation.fused import Activation
from dmlconf.tensors.datatypes import Array

__all__ = ["EXACT", "Arithmetic", "ExactArithmetic", "State", "Values"]


@dataclass(slots=True)
class Values:
    """FLOAT64 values, of which some rows may be absent.

    `absent`, sizes {rows, 1}, marks rows of zeros whose product with any matrix is 0. In
    a layer without an initial state, `sequences.initial` makes them.
    """

    value: Array
    absent: Array | None = field(default=None, kw_only=True)

    def __getitem__(self, index: Any) -> Values:
        return Values(self.value[index])

    def __add__(self, other: Values) -> Values:
        return Values(self.value + other.value)

    def __mul__(self, other: Values) -> Values:
        return Values(self.value * other.value)

    def complement(self) -> Values:
        """Return 1 - x."""
        return Values(1 - self.value)

    def clipped(self, threshold: float) -> Values:
        """Return the values clipped to -threshold and threshold; measured: NaN gives -threshold."""
        return Values(np.minimum(np.fmax(self.value, -threshold), threshold))

    def times_matrix(self, matrix: Array) -> Values:
        """Return the product with a matrix; absent zeros give 0, even with infinity."""
        product = self.value @ matrix
        return Values(product if self.absent is None else np.where(self.absent, 0.0, product))

    def where(self, chosen: Array, other: Values) -> Values:
        """Return these values where `chosen` is true, and the others elsewhere."""
        return Values(np.where(chosen, self.value, other.value))

    def nothing(self) -> Values:
        """Return zeros of the same sizes."""
        return Values(np.zeros_like(self.value))

    def common(self) -> Values:
        """Return the values; in `permitted`, results computed from them share their errors."""
        return self

    def settled(self) -> Values:
        """Return the values for an output; no others are computed from them."""
        return self

    def stacked(self, others: Sequence[Values], axis: int = 0) -> Values:
        """Return these values and others along a new axis."""
        return Values(np.stack([self.value, *(other.value for other in others)], axis))


State = tuple[Values, ...]
"""The state that a step passes to the next: the hidden nodes first, then perhaps the cell."""


class Arithmetic(Protocol):
    """How the equations of a layer are computed."""

    @property
    def copies(self) -> int:
        """How many copies of the batch are computed, which follow each other in the arrays."""
        ...

    def exact(self, value: Array, absent: Array | None = None) -> Values:
        """Return the values of a tensor, which have no errors; `absent` is that of `Values`."""
        ...

    def weighted(self, inputs: Array, weight: Array, biases: Sequence[Array]) -> Values:
        """Return `inputs @ weight` plus all biases for every step, sizes {steps, batch, n}."""
        ...

    def with_bias(self, sums: Values, bias: Array, site: str) -> Values:
        """Return `sums + bias`, which a kernel may store in FLOAT16; `site` names this sum."""
        ...

    def activated(self, sums: Values, activation: Activation) -> Values:
        """Return the activation of sums."""
        ...

    def held(self, values: Values, site: str) -> Values:
        """Return values as the next operation reads them; `site` is their name in the equations."""
        ...

    def carried(self, state: State, running: Array) -> State:
        """Return a state as the next step reads it; `running` marks sequences with a next step."""
        ...

    def undefined(self, values: Values, where: Array) -> Values:
        """Return the values; where `where` is true, any result is right."""
        ...


class ExactArithmetic:
    """Computes the equations with FLOAT64 numbers, without storing anything in FLOAT16."""

    copies = 1

    def exact(self, value: Array, absent: Array | None = None) -> Values:
        """Return the values of a tensor."""
        return Values(value, absent=absent)

    def weighted(self, inputs: Array, weight: Array, biases: Sequence[Array]) -> Values:
        """Return the products of every step's input with the weights, plus the biases."""
        # One product for all steps is several times faster than one for each.
        rows = inputs.reshape(-1, inputs.shape[2])
        sums = (rows @ weight).reshape(*inputs.shape[:2], -1)
        return Values(sums + sum(biases) if biases else sums)

    def with_bias(self, sums: Values, bias: Array, site: str) -> Values:
        """Return the sums plus the bias."""
        return Values(sums.value + bias)

    def activated(self, sums: Values, activation: Activation) -> Values:
        """Return the activation of sums."""
        return Values(activation.formula(sums.value))

    def held(self, values: Values, site: str) -> Values:
        """Return the values themselves."""
        return values

    def carried(self, state: State, running: Array) -> State:
        """Return the state itself."""
        return state

    def undefined(self, values: Values, where: Array) -> Values:
        """Return the values themselves."""
        return values


EXACT: Final = ExactArithmetic()
"""The arithmetic of the reference."""
