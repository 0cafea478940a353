"""The simple recurrent layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.error_scale import ErrorScale
from dmlconf.reference.recurrent.sequences import (
    LARGEST,
    Activation,
    Gates,
    Quantity,
    Sequences,
    State,
    error_scales_of,
    in_directions,
    initial,
    values_of,
    with_bias,
)
from dmlconf.tensors.datatypes import Array

__all__ = ["rnn", "rnn_error_scale"]


def rnn(
    InputTensor: Array,
    WeightTensor: Array,
    RecurrenceTensor: Array,
    BiasTensor: Array | None,
    HiddenInitTensor: Array | None,
    SequenceLengthsTensor: Array | None,
    OutputSequenceTensor: TensorDesc | None,
    OutputSingleTensor: TensorDesc | None,
    ActivationDescs: Sequence[Mapping[str, Any]],
    Direction: str,
) -> tuple[Array, ...]:
    """InputTensor {1, T, N, I}, WeightTensor {1, R, H, I}, RecurrenceTensor {1, R, H, H},
    [BiasTensor {1, 1, R, 2 * H}], [HiddenInitTensor {1, R, N, H}],
    [SequenceLengthsTensor {1, 1, 1, N}] -> [OutputSequenceTensor {T, R, N, H}],
    [OutputSingleTensor {1, R, N, H}]; FLOAT32, FLOAT16; SequenceLengthsTensor: UINT32

    Return all hidden nodes, and the last of each sequence, as far as wanted.

    There are T steps of N sequences with I inputs each, R directions and H hidden nodes.

    Each direction has the activation f. Of a step's input Xt and the hidden nodes Ht-1 before it,
    with the weights W, the recurrence R and the biases Wb and Rb:

        Ht = f(Xt W + Ht-1 R + Wb + Rb)

    Behind the end of a sequence all is 0. Backward, each sequence is read from its own end. A
    sequence of length 0 leaves hidden nodes of 0; backward it leaves those of the start.

    Source: the ONNX operator RNN, since the page of DML_RNN_OPERATOR_DESC has its equations as
    pictures; lengths were measured.
    """
    outputs = _layer(
        False, InputTensor, WeightTensor, RecurrenceTensor, BiasTensor, HiddenInitTensor,
        SequenceLengthsTensor, ActivationDescs, Direction,
    )  # fmt: skip
    return values_of(outputs, (OutputSequenceTensor, OutputSingleTensor))


def rnn_error_scale(
    OutputSequenceTensor: TensorDesc | None,
    OutputSingleTensor: TensorDesc | None,
    **arguments: Any,
) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs of `rnn`, for the same arguments.

    Derived in docs/bounds.md, Recurrent layers.
    """
    outputs = _layer(True, **arguments)
    terms = 2 + arguments["InputTensor"].shape[3] + arguments["RecurrenceTensor"].shape[3]
    with np.errstate(all="ignore"):
        return error_scales_of(outputs, (OutputSequenceTensor, OutputSingleTensor), terms)


def _layer(
    followed: bool,
    InputTensor: Array,
    WeightTensor: Array,
    RecurrenceTensor: Array,
    BiasTensor: Array | None,
    HiddenInitTensor: Array | None,
    SequenceLengthsTensor: Array | None,
    ActivationDescs: Sequence[Mapping[str, Any]],
    Direction: str,
) -> tuple[Quantity, ...]:
    def direction(index: int, sequences: Sequences, backward: bool) -> tuple[Quantity, State]:
        gates = Gates.of(WeightTensor, RecurrenceTensor, BiasTensor, index)
        (f,) = Activation.each(ActivationDescs[index : index + 1])
        dtype = InputTensor.dtype

        def step(sums: Quantity, state: State) -> State:
            # Measured: FLOAT16 holds it before the sums of the input are added.
            sums = sums + state[0].times_matrix(gates.recurrence).stored(dtype)
            return (sums.clipped(LARGEST).activated(f, dtype),)

        first = initial(HiddenInitTensor, index, sequences, gates.hidden, backward)
        # Measured: FLOAT16 holds the product before the bias is added, and the sum.
        sums = sequences.weighted(gates).stored(dtype, exact=sequences.exact_sums(gates))
        if BiasTensor is not None:
            bias = gates.biases[0] + gates.biases[1]
            sums = with_bias(sums, bias, dtype, exact=sequences.exact_sums(gates, bias))
        return sequences.run(step, sums, (first,), backward)

    sequences = Sequences.of(InputTensor, SequenceLengthsTensor, followed)
    with np.errstate(all="ignore"):
        return in_directions(Direction, sequences, direction)
