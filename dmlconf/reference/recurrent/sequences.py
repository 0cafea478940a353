"""What RNN, LSTM and GRU have in common: gates, steps, directions and lengths of sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.recurrent.values import Arithmetic, State, Values
from dmlconf.tensors.datatypes import Array

__all__ = [
    "Gates",
    "Sequences",
    "in_data_types",
    "in_directions",
    "initial",
]


@dataclass(frozen=True, slots=True)
class Gates:
    """The weights and biases of one direction, whose columns are grouped by gate.

    With 3 gates and 4 hidden nodes, the second gate has columns 4 to 7. RNN has one gate.

    Attributes:
        weight: sizes {inputs, gates * hidden}.
        recurrence: sizes {hidden, gates * hidden}.
        biases: the biases of the weights, and those of the recurrence, sizes {gates * hidden} each;
            zeros without a BiasTensor.
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
        """Return the slice of a gate's columns."""
        return slice(gate * self.hidden, (gate + 1) * self.hidden)


@dataclass(frozen=True, slots=True)
class Sequences:
    """The input of a layer, and the length of each sequence in the batch.

    Attributes:
        values: sizes {steps, batch, inputs}, FLOAT64.
        lengths: the length of each sequence as SequenceLengthsTensor gives it, which may exceed the
            number of steps; sizes {batch}.
        copies: how many copies of the batch follow each other in the arrays: 1 for the reference,
            and in `permitted` one for each simulated kernel.
    """

    values: Array
    lengths: Array
    copies: int

    @classmethod
    def of(cls, tensor: Array, lengths: Array | None, copies: int) -> Sequences:
        """Return the sequences of a desc's tensors."""
        steps, batch = tensor.shape[1:3]
        counts = np.full(batch, steps) if lengths is None else lengths.reshape(batch)
        values = np.tile(tensor[0].astype(np.float64), (1, copies, 1))
        lengths = np.tile(counts.astype(np.int64), copies)
        return cls(values, lengths, copies)

    @property
    def batch(self) -> int:
        """The number of sequences in all copies together."""
        return int(self.values.shape[1])

    def reversed(self) -> Sequences:
        """Return the sequences, each read from its own end."""
        return replace(self, values=_turned(Values(self.values), self.lengths).value)

    def run(
        self,
        step: Callable[[Values, State], State],
        sums: Values,
        state: State,
        backward: bool,
        arithmetic: Arithmetic,
    ) -> tuple[Values, State]:
        """Return the hidden nodes after every step (0 after a sequence's end), and the final state.

        The final state is the one after the last step of each sequence, except that steps may
        change the state of a sequence of length 0 (`_changing`).

        Args:
            step: returns the next state, given a step's sums and the state before it.
            sums: for every step, the products of its input with the weights, plus biases.
            state: the state before the first step: the hidden nodes, and the cell if there is one.
            backward: whether the sequences are reversed.
            arithmetic: carries the state from one step to the next.
        """
        nothing = state[0].nothing()
        all_run_to_the_end = bool((self.lengths >= len(self.values)).all())
        outputs = []
        for number in range(len(self.values)):
            running = _have_step(number, self.lengths)
            if number:
                state = arithmetic.carried(state, running)
            new = step(sums[number], state)
            if all_run_to_the_end:
                state, output = new, new[0]
            else:
                state = tuple(
                    after.where(self._changing(number, part, backward), before)
                    for part, (after, before) in enumerate(zip(new, state, strict=True))
                )
                output = new[0].where(running, nothing)
            outputs.append(output.settled())
        return outputs[0].stacked(outputs[1:]), state

    def _changing(self, number: int, part: int, backward: bool) -> Array:
        """Return for which sequences a step changes a part of the state, sizes {batch, 1}.

        Part 0 is the hidden nodes, part 1 the cell. Measured in a forward direction: the first step
        changes the cell even of a sequence of length 0, and also the hidden nodes if the input has
        no other step.
        """
        even_if_empty = not backward and (part == 1 or len(self.values) == 1)
        return _have_step(number, np.maximum(self.lengths, 1) if even_if_empty else self.lengths)


def initial(
    tensor: Array | None,
    direction: int,
    sequences: Sequences,
    hidden: int,
    backward: bool,
    arithmetic: Arithmetic,
) -> Values:
    """Return the hidden nodes or the cell before the first step: those of `tensor`, or zeros.

    The sizes are {batch, hidden}. Measured: without a tensor, the first step leaves out the product
    with the recurrence, so that an infinite recurrence does not give NaN. In a backward direction,
    sequences that end before the input's last step still multiply zeros by the recurrence.
    """
    if tensor is not None:
        value = np.tile(tensor[0, direction].astype(np.float64), (sequences.copies, 1))
        return arithmetic.exact(value)
    shorter = backward & (sequences.lengths < len(sequences.values))
    zeros = np.zeros((sequences.batch, hidden))
    return arithmetic.exact(zeros, absent=~shorter[:, np.newaxis])


def in_directions(
    direction: str,
    sequences: Sequences,
    layer: Callable[[int, Sequences, bool], tuple[Values, State]],
    arithmetic: Arithmetic,
) -> tuple[Values, ...]:
    """Return the hidden nodes after every step, and the last state, of every direction.

    The sizes are {steps, directions, batch, hidden} for the hidden nodes, and {1, directions,
    batch, hidden} for each part of the state.

    Args:
        layer: computes one direction, given its index, the sequences in its order, and whether they
            are reversed.
    """
    directions: list[tuple[Values, ...]] = []
    for index in range(2 if direction == "BIDIRECTIONAL" else 1):
        backward = direction == "BACKWARD" or index == 1
        outputs, state = layer(index, sequences.reversed() if backward else sequences, backward)
        if backward:
            outputs = _turned(outputs, sequences.lengths)
        else:
            single = _single(state[0], sequences.lengths, len(outputs.value), arithmetic)
            state = (single, *state[1:])
        directions.append((outputs, *(part[np.newaxis] for part in state)))
    first, *others = directions
    return tuple(
        part.stacked([other[number] for other in others], 1) for number, part in enumerate(first)
    )


def in_data_types(
    outputs: Sequence[Array], descs: Sequence[TensorDesc | None]
) -> tuple[Array, ...]:
    """Return the outputs whose descs are not None, in their data types."""
    with np.errstate(all="ignore"):
        return tuple(
            values.astype(desc.DataType.dtype)
            for values, desc in zip(outputs, descs, strict=True)
            if desc is not None
        )


def _have_step(step: int, lengths: Array) -> Array:
    return (step < lengths)[:, np.newaxis]


def _single(hidden: Values, lengths: Array, steps: int, arithmetic: Arithmetic) -> Values:
    """Return OutputSingleTensor of forward sequences.

    Measured: if the input has one step, the output is the hidden nodes for every length. If the
    input has more steps, the output is 0 for a length of 0. For a length beyond all steps, DirectML
    may write nothing, so any result is right.
    """
    known = ((lengths > 0) & (lengths <= steps) | (steps == 1))[:, np.newaxis]
    beyond = ((lengths > steps) & (steps > 1))[:, np.newaxis]
    return arithmetic.undefined(hidden.where(known, hidden.nothing()), beyond)


def _turned(values: Values, lengths: Array) -> Values:
    """Return each sequence reversed within its length: a, b, c, d of length 3 is c, b, a, d."""
    steps = np.arange(len(values.value))[:, np.newaxis]
    lengths = np.minimum(lengths, len(values.value))
    sources = np.where(steps < lengths, lengths - 1 - steps, steps)
    return values[sources, np.arange(len(lengths))]
