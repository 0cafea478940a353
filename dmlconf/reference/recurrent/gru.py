"""The gated recurrent unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.error_scale import ErrorScale
from dmlconf.reference.recurrent.sequences import (
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

__all__ = ["gru", "gru_error_scale"]


def gru(
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
    LinearBeforeReset: bool,
) -> tuple[Array, ...]:
    """InputTensor {1, T, N, I}, WeightTensor {1, R, 3 * H, I}, RecurrenceTensor {1, R, 3 * H, H},
    [BiasTensor {1, 1, R, 6 * H}], [HiddenInitTensor {1, R, N, H}],
    [SequenceLengthsTensor {1, 1, 1, N}] -> [OutputSequenceTensor {T, R, N, H}],
    [OutputSingleTensor {1, R, N, H}]; FLOAT32, FLOAT16; SequenceLengthsTensor: UINT32

    Return all hidden nodes, and the last of each sequence, as far as wanted.

    There are T steps of N sequences with I inputs each, R directions and H hidden nodes.

    Each direction has the activations f and g. Of a step's input Xt and the hidden nodes Ht-1
    before it, with the weights W, the recurrence R and the biases Wb and Rb of the gates in the
    order z, r, h:

        zt = f(Xt Wz + Ht-1 Rz + Wbz + Rbz)
        rt = f(Xt Wr + Ht-1 Rr + Wbr + Rbr)
        ht = g(Xt Wh + (rt Ht-1) Rh + Wbh + Rbh),
            or with LinearBeforeReset g(Xt Wh + rt (Ht-1 Rh + Rbh) + Wbh)
        Ht = (1 - zt) ht + zt Ht-1

    Behind the end of a sequence all is 0. Backward, each sequence is read from its own end. A
    sequence of length 0 leaves hidden nodes of 0; backward it leaves those of the start.

    Source: the ONNX operator GRU, since the page of DML_GRU_OPERATOR_DESC has its equations as
    pictures; the order of gates and lengths were measured.
    """
    outputs = _layer(
        False, InputTensor, WeightTensor, RecurrenceTensor, BiasTensor, HiddenInitTensor,
        SequenceLengthsTensor, ActivationDescs, Direction, LinearBeforeReset,
    )  # fmt: skip
    return values_of(outputs, (OutputSequenceTensor, OutputSingleTensor))


def gru_error_scale(
    OutputSequenceTensor: TensorDesc | None,
    OutputSingleTensor: TensorDesc | None,
    **arguments: Any,
) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs of `gru`, for the same arguments.

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
    LinearBeforeReset: bool,
) -> tuple[Quantity, ...]:
    def direction(index: int, sequences: Sequences, backward: bool) -> tuple[Quantity, State]:
        gates = Gates.of(WeightTensor, RecurrenceTensor, BiasTensor, index)
        f, g = Activation.each(ActivationDescs[2 * index : 2 * index + 2])
        part_z, part_r, part_h = (gates.part(gate) for gate in range(3))
        both = slice(0, 2 * gates.hidden)
        dtype = InputTensor.dtype
        of_weights, of_recurrence = gates.biases
        bias_h = Quantity.constant(of_recurrence[np.newaxis, part_h], followed)
        recurrence_both, recurrence_h = gates.recurrence[:, both], gates.recurrence[:, part_h]
        # Measured: FLOAT16 holds every product with a matrix before a bias is added, and
        # the gates and ht unless DirectML 1.15.4 resets behind the product. DirectML 1.8.0 holds
        # gates and ht always, and sums with a bias.
        always = not LinearBeforeReset

        def step(sums: Quantity, state: State) -> State:
            (hidden,) = state
            product = hidden.times_matrix(recurrence_both).stored(dtype)
            gated = _activated(sums[:, both] + product, f, dtype, always)
            zt, rt = gated[:, part_z], gated[:, part_r]
            if LinearBeforeReset:
                product = hidden.times_matrix(recurrence_h).stored(dtype)
                if BiasTensor is not None:
                    product = (product + bias_h).stored(dtype, measured=False)
                reset = (rt * product).stored(dtype, measured=False)
            else:
                kept = replace((rt * hidden).stored(dtype), absent=hidden.absent)
                reset = kept.times_matrix(recurrence_h).stored(dtype)
            ht = _activated(sums[:, part_h] + reset, g, dtype, always)
            taken = (zt.complement() * ht).stored(dtype, measured=False)
            return (taken + (zt * hidden).stored(dtype, measured=False),)

        first = initial(HiddenInitTensor, index, sequences, gates.hidden, backward)
        sums = sequences.weighted(gates).stored(dtype, exact=sequences.exact_sums(gates))
        if BiasTensor is not None:
            of_sums = of_recurrence.copy()
            if LinearBeforeReset:
                of_sums[part_h] = 0
            bias = of_weights + of_sums
            exact = sequences.exact_sums(gates, bias)
            sums = with_bias(sums, bias, dtype, measured=False, exact=exact)
        return sequences.run(step, sums, (first,), backward)

    sequences = Sequences.of(InputTensor, SequenceLengthsTensor, followed)
    with np.errstate(all="ignore"):
        return in_directions(Direction, sequences, direction)


def _activated(
    sums: Quantity, activation: Activation, dtype: np.dtype[Any], measured: bool
) -> Quantity:
    """Return the activation of a gate's sums, both of which some kernels hold in the data type."""
    held = sums.stored(dtype, measured=False)
    return held.activated(activation, dtype).stored(dtype, measured)
