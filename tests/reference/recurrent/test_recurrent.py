"""LSTM agrees with a loop over its steps; LSTM and RNN treat infinities as measured.

The tested code is in `dmlconf/reference/recurrent/lstm.py`, `dmlconf/reference/recurrent/rnn.py`
and `dmlconf/reference/recurrent/sequences.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.recurrent.lstm import lstm
from dmlconf.reference.recurrent.rnn import rnn
from dmlconf.tensors.datatypes import Array, DataType

STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 2
ACTIVATIONS = [{"operator": f"ACTIVATION_{name}"} for name in ("SIGMOID", "TANH", "TANH")]


def random(*sizes: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(0, 1, sizes).astype(np.float32)


def lstm_outputs(
    x: Array,
    weight: Array,
    recurrence: Array,
    cell: Array,
    peepholes: Array | None,
    coupled: bool,
    clip: float | None = None,
) -> tuple[Array, ...]:
    """Return OutputSequenceTensor and OutputCellSingleTensor."""
    steps, batch = x.shape[1:3]
    hidden = recurrence.shape[-1]
    return lstm(
        InputTensor=x,
        WeightTensor=weight,
        RecurrenceTensor=recurrence,
        BiasTensor=None,
        HiddenInitTensor=None,
        CellMemInitTensor=cell,
        SequenceLengthsTensor=None,
        PeepholeTensor=peepholes,
        OutputSequenceTensor=TensorDesc(DataType.FLOAT32, (steps, 1, batch, hidden)),
        OutputSingleTensor=None,
        OutputCellSingleTensor=TensorDesc(DataType.FLOAT32, (1, 1, batch, hidden)),
        ActivationDescs=ACTIVATIONS,
        Direction="FORWARD",
        ClipThreshold=0.0 if clip is None else clip,
        UseClipThreshold=clip is not None,
        CoupleInputForget=coupled,
    )


def sigmoid(x: Array) -> Array:
    value: Array = 1 / (1 + np.exp(-x))
    return value


@pytest.mark.parametrize("with_peepholes", [False, True])
@pytest.mark.parametrize("coupled", [False, True])
def test_lstm_agrees_with_its_equations(with_peepholes: bool, coupled: bool) -> None:
    x = random(1, STEPS, BATCH, INPUTS, seed=1)
    weight = random(1, 1, 4 * HIDDEN, INPUTS, seed=2)
    recurrence = random(1, 1, 4 * HIDDEN, HIDDEN, seed=3)
    start = random(1, 1, BATCH, HIDDEN, seed=4)
    peepholes = random(1, 1, 1, 3 * HIDDEN, seed=5) if with_peepholes else None
    sequence, last = lstm_outputs(x, weight, recurrence, start, peepholes, coupled)

    by_i, by_o, by_f = np.split(np.zeros(3 * HIDDEN) if peepholes is None else peepholes.ravel(), 3)
    hidden, cell = np.zeros((BATCH, HIDDEN)), start[0, 0].astype(np.float64)
    for step in range(STEPS):
        sums = x[0, step] @ weight[0, 0].T.astype(np.float64) + hidden @ recurrence[0, 0].T
        i, o, f, c = np.split(sums, 4, axis=1)
        i = sigmoid(i + by_i * cell)
        f = 1 - i if coupled else sigmoid(f + by_f * cell)
        cell = f * cell + i * np.tanh(c)
        hidden = sigmoid(o + by_o * cell) * np.tanh(cell)
        np.testing.assert_allclose(sequence[step, 0], hidden, rtol=1e-6)
    np.testing.assert_allclose(last[0, 0], cell, rtol=1e-6)


def test_lstm_clips_to_the_threshold_in_float32() -> None:
    tensors = (np.ones(sizes, np.float32) for sizes in ((1, 1, 1, 1), (1, 1, 4, 1), (1, 1, 4, 1)))
    x, weight, recurrence = tensors
    cell = np.zeros((1, 1, 1, 1), np.float32)
    for clip in (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9):
        in_float32 = float(np.float32(clip))
        outputs, same = (
            lstm_outputs(x, weight, recurrence, cell, None, False, threshold)
            for threshold in (clip, in_float32)
        )
        np.testing.assert_array_equal(outputs, same)
        # Each sum is 1, which is clipped to the threshold.
        last = sigmoid(np.array(in_float32)) * np.tanh(in_float32)
        np.testing.assert_allclose(outputs[1].item(), last, rtol=1e-6)


def test_infinite_cell_changes_no_gate_without_peepholes() -> None:
    one = np.ones((1, 2, 1, 1), np.float32)
    weight = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4, 1)
    infinite = np.full((1, 1, 1, 1), np.inf, np.float32)
    sequence, last = lstm_outputs(one, weight, np.zeros_like(weight), infinite, None, False)
    output_gate = sigmoid(weight[0, 0, 1])
    np.testing.assert_allclose(sequence[:, 0, 0], [output_gate, output_gate], rtol=1e-6)
    assert last.ravel().tolist() == [np.inf]


@pytest.mark.parametrize("direction", ["FORWARD", "BACKWARD"])
def test_first_step_without_initial_state_ignores_recurrence(
    direction: str,
) -> None:
    zeros = np.zeros((1, 2, 2, 1), np.float32)
    infinite = np.full((1, 1, 1, 1), np.inf, np.float32)
    (sequence,) = rnn(
        InputTensor=zeros,
        WeightTensor=np.ones((1, 1, 1, 1), np.float32),
        RecurrenceTensor=infinite,
        BiasTensor=None,
        HiddenInitTensor=None,
        SequenceLengthsTensor=np.array([2, 1], np.uint32).reshape(1, 1, 1, 2),
        OutputSequenceTensor=TensorDesc(DataType.FLOAT32, (2, 1, 2, 1)),
        OutputSingleTensor=None,
        ActivationDescs=[{"operator": "ACTIVATION_IDENTITY"}],
        Direction=direction,
    )
    # 0 times infinity is NaN, which clipping turns into the lowest number.
    least = float(np.finfo(np.float32).min)
    expected = {"FORWARD": [0, 0, least, 0], "BACKWARD": [least, least, 0, 0]}
    assert sequence.ravel().tolist() == expected[direction]
