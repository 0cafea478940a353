"""What recurrent layers have in common: gates, steps, directions and lengths of sequences.

A layer's equations are written once, on quantities: values that may carry a magnitude, which is
what their error is counted in, to first order. It tells how errors of gates and states grow from
step to step, and costs nothing where only values are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dmlconf.backends.numpy.fused_activation import fused_formula, fused_magnitude
from dmlconf.backends.numpy.magnitude import Magnitude
from dmlconf.backends.numpy.rounding import finite_sizes, or_any_result
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = [
    "LARGEST",
    "Activation",
    "Gates",
    "Quantity",
    "Sequences",
    "State",
    "in_directions",
    "initial",
    "magnitudes_of",
    "values_of",
]

_LEAST_NORMAL: Final = 2.0**-14
"""Below this the places of FLOAT16 are no finer."""

LARGEST: Final = float(np.finfo(np.float32).max)
"""What bounds the sums of a gate that are not clipped any closer."""


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation of gates or states.

    Attributes:
        desc: a nested operator: its name as `operator`, and its attributes.
        formula: the function of FLOAT64 values that it is.
    """

    desc: Mapping[str, Any]
    formula: Callable[[Array], Array]

    @classmethod
    def each(cls, descs: Sequence[Mapping[str, Any]]) -> list[Activation]:
        """Return an activation for each desc."""
        return [cls(desc, fused_formula(desc)) for desc in descs]


@dataclass(slots=True)
class Quantity:
    """FLOAT64 values, and their magnitude where errors are followed."""

    value: Array
    magnitude: Magnitude | None

    def __getitem__(self, index: Any) -> Quantity:
        magnitude = None if self.magnitude is None else self.magnitude[index]
        return Quantity(self.value[index], magnitude)

    def __add__(self, other: Quantity) -> Quantity:
        return self._made(self.value + other.value, other, lambda first, second: first + second)

    def __mul__(self, other: Quantity) -> Quantity:
        return self._made(
            self.value * other.value,
            other,
            lambda first, second: first.scaled(other.value) + second.scaled(self.value),
        )

    def _made(
        self,
        value: Array,
        other: Quantity,
        carried: Callable[[Magnitude, Magnitude], Magnitude],
    ) -> Quantity:
        """Return a value with what it takes of both magnitudes, and of its own rounding."""
        if self.magnitude is None or other.magnitude is None:
            return Quantity(value, None)
        return Quantity(value, carried(self.magnitude, other.magnitude) + Magnitude(np.abs(value)))

    def complement(self) -> Quantity:
        """Return 1 - x."""
        one = Magnitude(np.ones(1))
        return Quantity(1 - self.value, None if self.magnitude is None else self.magnitude + one)

    def clipped(self, threshold: float) -> Quantity:
        """Return the values between -threshold and threshold, NaN as -threshold.

        Measured: so it is, because the greater one of NaN and a number is the number. NaN that is
        passed on is as right, so any result is.
        """
        value = np.minimum(np.fmax(self.value, -threshold), threshold)
        if self.magnitude is None:
            return Quantity(value, None)
        exact = Magnitude(np.zeros_like(value))
        magnitude = exact.where(np.isinf(self.value), self.magnitude)
        return Quantity(value, magnitude.open_where(np.isnan(self.value)))

    def stored(self, dtype: np.dtype[Any]) -> Quantity:
        """Return the same, held in the data type, which loses a place if it is FLOAT16.

        Any result is right where a finite number overflows there.
        """
        if self.magnitude is None:
            return self
        beyond = np.isfinite(self.value) & (np.abs(self.value) > float(np.finfo(dtype).max))
        magnitude = self.magnitude.open_where(beyond)
        if dtype == np.float16:
            magnitude = magnitude.holding(np.maximum(np.abs(self.value), _LEAST_NORMAL))
        return Quantity(self.value, magnitude)

    def activated(self, activation: Activation, dtype: np.dtype[Any]) -> Quantity:
        """Return the activation; `dtype` is the type of the tensors."""
        value = activation.formula(self.value)
        if self.magnitude is None:
            return Quantity(value, None)
        magnitude = fused_magnitude(self.value, self.magnitude, activation.desc, dtype)
        # A sum may be held in the data type before the last term is added.
        sums = self.magnitude.sums
        overflowed = np.isfinite(sums) & (sums > float(np.finfo(dtype).max))
        return Quantity(value, magnitude.open_where(overflowed)).stored(dtype)

    def times_matrix(self, matrix: Array) -> Quantity:
        """Return the product with a constant matrix; zeros take nothing of it, not even infinity.

        Measured: without initial hidden nodes, the first step computes no product.
        """
        if np.count_nonzero(self.value) == 0:
            matrix = np.zeros_like(matrix)
        value = self.value @ matrix
        if self.magnitude is None:
            return Quantity(value, None)
        magnitude = self.magnitude.times(matrix)
        sums = _product_size(np.abs(self.value) + self.magnitude.sums, matrix)
        magnitude = replace(magnitude, sums=sums)
        return Quantity(value, _in_slices(magnitude, value, self.value, matrix))

    def where(self, chosen: Array, other: Quantity) -> Quantity:
        """Return this where chosen, else the other."""
        value = np.where(chosen, self.value, other.value)
        if self.magnitude is None or other.magnitude is None:
            return Quantity(value, None)
        return Quantity(value, self.magnitude.where(chosen, other.magnitude))

    def nothing(self) -> Quantity:
        """Return zeros of the same sizes."""
        zeros = np.zeros_like(self.value)
        return Quantity(zeros, None if self.magnitude is None else Magnitude(zeros))

    @staticmethod
    def constant(value: Array, followed: bool) -> Quantity:
        """Return a summand that is known exactly and counts in the magnitude."""
        return Quantity(value, Magnitude(np.abs(value)) if followed else None)

    @staticmethod
    def stacked(parts: Sequence[Quantity], axis: int = 0) -> Quantity:
        """Return the quantities along a new axis."""
        magnitudes = [part.magnitude for part in parts if part.magnitude is not None]
        value = np.stack([part.value for part in parts], axis)
        return Quantity(value, Magnitude.stacked(magnitudes, axis) if magnitudes else None)


State = tuple[Quantity, ...]
"""What a step leaves to the next: the hidden nodes first."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The constants of one direction, with the gates one behind the other.

    Attributes:
        weight: sizes {inputs, gates * hidden}.
        recurrence: sizes {hidden, gates * hidden}.
        biases: those of the weights and those of the recurrence, each of gates * hidden.
    """

    weight: Array
    recurrence: Array
    biases: tuple[Array, Array]

    @classmethod
    def of(cls, weight: Array, recurrence: Array, bias: Array | None, direction: int) -> Gates:
        """Return the gates of a direction from the tensors of a desc."""
        recurrences = recurrence[0, direction].astype(np.float64)
        both = np.zeros(2 * len(recurrences))
        if bias is not None:
            both = bias[0, 0, direction].astype(np.float64)
        first, second = np.split(both, 2)
        weights = weight[0, direction].astype(np.float64)
        return cls(weights.T, recurrences.T, (first, second))

    @property
    def hidden(self) -> int:
        """The number of hidden nodes."""
        return len(self.recurrence)

    def part(self, gate: int) -> slice:
        """Return where a gate's columns are."""
        return slice(gate * self.hidden, (gate + 1) * self.hidden)


@dataclass(frozen=True, slots=True)
class Sequences:
    """The input of a layer, and how far each sequence of the batch goes.

    Attributes:
        values: sizes {steps, batch, inputs}, FLOAT64.
        lengths: for each sequence, as given, and so perhaps beyond the number of steps.
        followed: whether magnitudes are wanted.
        dtype: the type of the tensors.
    """

    values: Array
    lengths: Array
    followed: bool
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, tensor: Array, lengths: Array | None, followed: bool) -> Sequences:
        """Return the sequences of a desc's tensors."""
        steps, batch = tensor.shape[1:3]
        told = np.full(batch, steps) if lengths is None else lengths.reshape(batch)
        return cls(tensor[0].astype(np.float64), told.astype(np.int64), followed, tensor.dtype)

    @property
    def batch(self) -> int:
        """The number of sequences."""
        return int(self.values.shape[1])

    def reversed(self) -> Sequences:
        """Return the sequences, each read from its own end."""
        turned = _turned(Quantity(self.values, None), self.lengths)
        return replace(self, values=turned.value)

    def weighted(self, gates: Gates, bias: Array) -> Quantity:
        """Return what the gates of every step add up of the input and a bias."""
        # One product for all steps is several times faster than one for each.
        rows = self.values.reshape(-1, self.values.shape[2])
        value = (rows @ gates.weight + bias).reshape(*self.values.shape[:2], -1)
        if not self.followed:
            return Quantity(value, None)
        sums = _product_size(self.values, gates.weight) + np.abs(bias)
        magnitude = _in_slices(Magnitude(sums), value, self.values, gates.weight)
        # Measured: FLOAT16 holds them before those of the hidden nodes are added.
        return Quantity(value, magnitude).stored(self.dtype)

    def run(
        self,
        step: Callable[[Quantity, State], State],
        sums: Quantity,
        state: State,
        backward: bool,
    ) -> tuple[Quantity, State]:
        """Return the hidden nodes behind every step, 0 behind a sequence's end, and the last state.

        Measured: forward, a sequence of length 0 changes the cell once, and where there is only one
        step the hidden nodes too.

        Args:
            step: makes the next state of a step's sums and the state.
            sums: what the input adds up to, for every step.
            state: before the first step: the hidden nodes, and perhaps the cell.
            backward: whether the sequences are reversed.
        """
        nothing = state[0].nothing()
        changed_once = () if backward else (0, 1) if len(self.values) == 1 else (1,)
        same_length = bool((self.lengths >= len(self.values)).all())
        outputs = []
        for place in range(len(self.values)):
            new = step(sums[place], state)
            if same_length:
                state, output = new, new[0]
            else:
                running = (place < self.lengths)[:, np.newaxis]
                once = (place < np.maximum(self.lengths, 1))[:, np.newaxis]
                state = tuple(
                    after.where(once if part in changed_once else running, before)
                    for part, (after, before) in enumerate(zip(new, state, strict=True))
                )
                output = new[0].where(running, nothing)
            outputs.append(output)
        return Quantity.stacked(outputs), state


def initial(
    tensor: Array | None, direction: int, batch: int, hidden: int, followed: bool
) -> Quantity:
    """Return the state before the first step: that of the tensor, or 0."""
    value = np.zeros((batch, hidden)) if tensor is None else tensor[0, direction].astype(np.float64)
    return Quantity(value, Magnitude(np.zeros_like(value)) if followed else None)


def in_directions(
    direction: str,
    sequences: Sequences,
    layer: Callable[[int, Sequences, bool], tuple[Quantity, State]],
) -> tuple[Quantity, ...]:
    """Return the hidden nodes behind every step, and the last state, of all directions.

    Args:
        direction: FORWARD, BACKWARD or BIDIRECTIONAL.
        sequences: the input.
        layer: computes one direction, by its index, of sequences in its own order; the last
            argument tells whether these are reversed.

    Returns:
        The sequence, sizes {steps, directions, batch, hidden}, and each part of the state, sizes
        {1, directions, batch, hidden}.
    """
    found: list[tuple[Quantity, ...]] = []
    for index in range(2 if direction == "BIDIRECTIONAL" else 1):
        backward = direction == "BACKWARD" or index == 1
        outputs, state = layer(index, sequences.reversed() if backward else sequences, backward)
        if backward:
            outputs = _turned(outputs, sequences.lengths)
        else:
            state = (_single(state[0], sequences.lengths, len(outputs.value)), *state[1:])
        found.append((outputs, *(part[np.newaxis] for part in state)))
    return tuple(Quantity.stacked(parts, 1) for parts in zip(*found, strict=True))


def values_of(found: Sequence[Quantity], wanted: Sequence[TensorDesc | None]) -> tuple[Array, ...]:
    """Return the values of the outputs that a desc has, in their data types."""
    with np.errstate(all="ignore"):
        return tuple(
            quantity.value.astype(desc.DataType.dtype)
            for quantity, desc in zip(found, wanted, strict=True)
            if desc is not None
        )


def magnitudes_of(
    found: Sequence[Quantity], wanted: Sequence[TensorDesc | None]
) -> tuple[Magnitude, ...]:
    """Return the magnitudes of the outputs that a desc has."""
    return tuple(
        quantity.magnitude
        for quantity, desc in zip(found, wanted, strict=True)
        if desc is not None and quantity.magnitude is not None
    )


def _product_size(left: Array, right: Array) -> Array:
    """Return the product of absolute values, any size where finite terms overflow beside others."""
    size: Array = np.abs(left) @ np.abs(right)
    if np.isfinite(size).all():
        return size
    return or_any_result(size, finite_sizes(left) @ finite_sizes(right))


def _in_slices(magnitude: Magnitude, sums: Array, left: Array, right: Array) -> Magnitude:
    """Return the magnitude of a matrix product, whose slices FLOAT16 may hold as in GEMM."""
    return magnitude.in_slices(sums, np.square(left) @ np.square(right), len(right))


def _single(hidden: Quantity, lengths: Array, steps: int) -> Quantity:
    """Return the last hidden nodes of forward sequences, 0 where lengths name no step.

    Measured: so it is, unless there is one step only, whose hidden nodes are always returned. What
    belongs to a length beyond the last step may as well not be written, so any result is right.
    """
    told = ((lengths > 0) & (lengths <= steps) | (steps == 1))[:, np.newaxis]
    found = hidden.where(told, hidden.nothing())
    if found.magnitude is None:
        return found
    beyond = ((lengths > steps) & (steps > 1))[:, np.newaxis]
    return Quantity(found.value, found.magnitude.open_where(beyond))


def _turned(quantity: Quantity, lengths: Array) -> Quantity:
    """Return each sequence from its end; what is behind the end stays there."""
    steps = np.arange(len(quantity.value))[:, np.newaxis]
    lengths = np.minimum(lengths, len(quantity.value))
    sources = np.where(steps < lengths, lengths - 1 - steps, steps)
    return quantity[sources, np.arange(len(lengths))]
