"""Recurrent layers: each step computes from the input and from what the step before left.

Beside its values every quantity carries a magnitude: what its error is counted in, to first order,
so that the magnitude of an output tells how errors of gates and states grow from step to step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.backends.numpy.activation import fused, fused_magnitude
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["lstm", "lstm_magnitude"]

_Activation = Mapping[str, Any]


def lstm(
    InputTensor: Array,
    WeightTensor: Array,
    RecurrenceTensor: Array,
    BiasTensor: Array | None,
    HiddenInitTensor: Array | None,
    CellMemInitTensor: Array | None,
    SequenceLengthsTensor: Array | None,
    PeepholeTensor: Array | None,
    OutputSequenceTensor: TensorDesc | None,
    OutputSingleTensor: TensorDesc | None,
    OutputCellSingleTensor: TensorDesc | None,
    ActivationDescs: Sequence[_Activation],
    Direction: str,
    ClipThreshold: float,
    UseClipThreshold: bool,
    CoupleInputForget: bool,
) -> tuple[Array, ...]:
    """Return all hidden nodes, the last of each sequence, and its last cell, as far as wanted.

    Gates are in the order i, o, f, c, and each direction has the activations f, g and h. Clipping
    bounds what the gates' activations take. Behind the end of a sequence all is 0. Backward, each
    sequence is read from its own end. A sequence of length 0 leaves hidden nodes of 0 and a cell
    changed once; backward it leaves both as they were at first.

    Source: the ONNX operator LSTM, since the page of DML_LSTM_OPERATOR_DESC has its equations as
    pictures; the order of gates, clipping and lengths were measured.
    """
    layer = _Layer(
        _Tensors(WeightTensor, RecurrenceTensor, BiasTensor, PeepholeTensor),
        HiddenInitTensor, CellMemInitTensor, SequenceLengthsTensor, ActivationDescs, Direction,
        ClipThreshold if UseClipThreshold else np.inf, CoupleInputForget, InputTensor.dtype,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        values, _ = layer.run(InputTensor)
    wanted = OutputSequenceTensor, OutputSingleTensor, OutputCellSingleTensor
    return tuple(
        array.astype(desc.DataType.dtype)
        for array, desc in zip(values, wanted, strict=True)
        if desc is not None
    )


def lstm_magnitude(
    InputTensor: Array,
    WeightTensor: Array,
    RecurrenceTensor: Array,
    BiasTensor: Array | None,
    HiddenInitTensor: Array | None,
    CellMemInitTensor: Array | None,
    SequenceLengthsTensor: Array | None,
    PeepholeTensor: Array | None,
    OutputSequenceTensor: TensorDesc | None,
    OutputSingleTensor: TensorDesc | None,
    OutputCellSingleTensor: TensorDesc | None,
    ActivationDescs: Sequence[_Activation],
    Direction: str,
    ClipThreshold: float,
    UseClipThreshold: bool,
    CoupleInputForget: bool,
) -> tuple[Array, ...]:
    """Return what the errors of the outputs are counted in, carried through gates and steps."""
    layer = _Layer(
        _Tensors(WeightTensor, RecurrenceTensor, BiasTensor, PeepholeTensor),
        HiddenInitTensor, CellMemInitTensor, SequenceLengthsTensor, ActivationDescs, Direction,
        ClipThreshold if UseClipThreshold else np.inf, CoupleInputForget, InputTensor.dtype,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        _, magnitudes = layer.run(InputTensor)
    wanted = OutputSequenceTensor, OutputSingleTensor, OutputCellSingleTensor
    return tuple(array for array, desc in zip(magnitudes, wanted, strict=True) if desc is not None)


@dataclass(frozen=True, slots=True)
class _Tensors:
    """The constants of a layer, as given."""

    weight: Array
    recurrence: Array
    bias: Array | None
    peephole: Array | None

    def gates(self, direction: int) -> tuple[Array, Array, Array, Array]:
        """Return a direction's weights by gate, and its biases and peepholes, FLOAT64."""
        hidden = self.recurrence.shape[3]
        weight = self.weight[0, direction].astype(np.float64).reshape(4, hidden, -1)
        recurrence = self.recurrence[0, direction].astype(np.float64).reshape(4, hidden, hidden)
        bias = np.zeros((2, 4, hidden))
        if self.bias is not None:
            bias = self.bias[0, 0, direction].astype(np.float64).reshape(2, 4, hidden)
        peephole = np.zeros((3, hidden))
        if self.peephole is not None:
            peephole = self.peephole[0, 0, direction].astype(np.float64).reshape(3, hidden)
        return weight, recurrence, bias, peephole


@dataclass(frozen=True, slots=True)
class _Inexact:
    """Values with their magnitudes."""

    value: Array
    magnitude: Array

    def activated(self, activation: _Activation, dtype: np.dtype[Any]) -> _Inexact:
        own = fused_magnitude(self.value, self.magnitude, activation, dtype)
        return _Inexact(fused(self.value, activation), own)

    def times(self, other: _Inexact) -> _Inexact:
        value = self.value * other.value
        carried = (
            np.abs(self.value) * other.magnitude
            + np.abs(other.value) * self.magnitude
            + np.abs(value)
        )
        return _Inexact(value, carried)

    def plus(self, other: _Inexact) -> _Inexact:
        value = self.value + other.value
        return _Inexact(value, self.magnitude + other.magnitude + np.abs(value))

    def clipped(self, threshold: float) -> _Inexact:
        return _Inexact(np.clip(self.value, -threshold, threshold), self.magnitude)

    def where(self, chosen: Array, other: _Inexact) -> _Inexact:
        return _Inexact(
            np.where(chosen, self.value, other.value),
            np.where(chosen, self.magnitude, other.magnitude),
        )


@dataclass(frozen=True, slots=True)
class _Layer:
    """One LSTM layer."""

    tensors: _Tensors
    hidden_init: Array | None
    cell_init: Array | None
    lengths: Array | None
    activations: Sequence[_Activation]
    direction: str
    clip: float
    coupled: bool
    dtype: np.dtype[Any]

    def run(self, tensor: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return values and magnitudes of the sequence, the last hidden nodes, and the cell."""
        steps, batch = tensor.shape[1:3]
        lengths = np.full(batch, steps)
        if self.lengths is not None:
            lengths = self.lengths.reshape(batch).astype(np.int64)
        directions = 2 if self.direction == "BIDIRECTIONAL" else 1
        parts = [
            self._one_direction(
                tensor[0].astype(np.float64),
                lengths,
                index,
                self.direction == "BACKWARD" or index == 1,
            )
            for index in range(directions)
        ]
        sequence, last, cell = zip(*parts, strict=True)
        found = [
            _stacked(sequence, 1),
            _stacked([_Inexact(p.value[None], p.magnitude[None]) for p in last], 1),
            _stacked([_Inexact(p.value[None], p.magnitude[None]) for p in cell], 1),
        ]
        return tuple(p.value for p in found), tuple(p.magnitude for p in found)

    def _one_direction(
        self, tensor: Array, lengths: Array, index: int, backward: bool
    ) -> tuple[_Inexact, _Inexact, _Inexact]:
        steps, batch, _ = tensor.shape
        hidden_size = self.tensors.recurrence.shape[3]
        hidden = _initial(self.hidden_init, index, (batch, hidden_size))
        cell = _initial(self.cell_init, index, (batch, hidden_size))
        valid = np.minimum(lengths, steps)
        zeros = _initial(None, 0, (batch, hidden_size))
        outputs = [zeros] * steps
        for step in range(steps):
            # Backward, each sequence is read from its own end.
            times = np.clip(valid - 1 - step, 0, None) if backward else np.full(batch, step)
            new_hidden, new_cell = self._step(tensor[times, np.arange(batch)], hidden, cell, index)
            running = (step < valid)[:, np.newaxis]
            # Measured: forward, a sequence of length 0 still changes the cell once.
            changing = running if backward else (step < np.maximum(valid, 1))[:, np.newaxis]
            hidden, cell = new_hidden.where(running, hidden), new_cell.where(changing, cell)
            outputs[step] = hidden.where(running, zeros)
        sequence = _Inexact(
            np.stack([output.value for output in outputs]),
            np.stack([output.magnitude for output in outputs]),
        )
        if backward:
            return _reversed(sequence, valid), hidden, cell
        return sequence, hidden.where((valid > 0)[:, np.newaxis], zeros), cell

    def _step(
        self, tensor: Array, hidden: _Inexact, cell: _Inexact, index: int
    ) -> tuple[_Inexact, _Inexact]:
        """Return hidden nodes and cell behind one step."""
        f, g, h = self.activations[3 * index : 3 * index + 3]
        sums = [self._sum(tensor, hidden, index, gate) for gate in range(4)]
        _, _, _, peephole = self.tensors.gates(index)

        def peeped(gate: int, place: int, seen: _Inexact) -> _Inexact:
            weight = peephole[place]
            peep = _Inexact(
                weight * seen.value, np.abs(weight) * (np.abs(seen.value) + seen.magnitude)
            )
            return sums[gate].plus(peep).clipped(self.clip).activated(f, self.dtype)

        input_gate = peeped(0, 0, cell)
        if self.coupled:
            forget_gate = _Inexact(1 - input_gate.value, 1 + input_gate.magnitude)
        else:
            forget_gate = peeped(2, 2, cell)
        candidate = sums[3].clipped(self.clip).activated(g, self.dtype)
        new_cell = forget_gate.times(cell).plus(input_gate.times(candidate))
        output_gate = peeped(1, 1, new_cell)
        return output_gate.times(new_cell.activated(h, self.dtype)), new_cell

    def _sum(self, tensor: Array, hidden: _Inexact, index: int, gate: int) -> _Inexact:
        """Return what a gate adds up of inputs, hidden nodes and biases."""
        weights, recurrences, biases, _ = self.tensors.gates(index)
        weight, recurrence = weights[gate].T, recurrences[gate].T
        bias = biases[:, gate]
        value = tensor @ weight + hidden.value @ recurrence + bias.sum(0)
        magnitude = (
            np.abs(tensor) @ np.abs(weight)
            + (np.abs(hidden.value) + hidden.magnitude) @ np.abs(recurrence)
            + np.abs(bias).sum(0)
        )
        return _Inexact(value, magnitude)


def _initial(tensor: Array | None, index: int, shape: tuple[int, int]) -> _Inexact:
    value = np.zeros(shape) if tensor is None else tensor[0, index].astype(np.float64)
    return _Inexact(value, np.zeros(shape))


def _stacked(parts: Sequence[_Inexact], axis: int) -> _Inexact:
    return _Inexact(
        np.stack([part.value for part in parts], axis),
        np.stack([part.magnitude for part in parts], axis),
    )


def _reversed(sequence: _Inexact, valid: Array) -> _Inexact:
    """Return each sequence in the order of the input; what is behind its end stays there."""
    steps = np.arange(len(sequence.value))[:, np.newaxis]
    sources = np.where(steps < valid, valid - 1 - steps, steps)
    batch = np.arange(len(valid))
    return _Inexact(sequence.value[sources, batch], sequence.magnitude[sources, batch])
