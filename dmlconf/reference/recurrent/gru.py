"""The gated recurrent unit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.fields import of_fields
from dmlconf.reference.recurrent.layers import values
from dmlconf.reference.recurrent.rnn import RnnDesc
from dmlconf.reference.recurrent.sequences import (
    Gates,
    Sequences,
    initial,
)
from dmlconf.reference.recurrent.values import Arithmetic, State, Values
from dmlconf.tensors.datatypes import Array

__all__ = [
    "GruDesc",
    "gru",
    "gru_direction",
]


@dataclass(frozen=True, slots=True)
class GruDesc(RnnDesc):
    """The fields of DML_GRU_OPERATOR_DESC."""

    LinearBeforeReset: bool


@of_fields(GruDesc)
def gru(desc: GruDesc) -> tuple[Array, ...]:
    """InputTensor {1, T, N, I}, WeightTensor {1, R, 3 * H, I}, RecurrenceTensor {1, R, 3 * H, H},
    [BiasTensor {1, 1, R, 6 * H}], [HiddenInitTensor {1, R, N, H}],
    [SequenceLengthsTensor {1, 1, 1, N}] -> [OutputSequenceTensor {T, R, N, H}],
    [OutputSingleTensor {1, R, N, H}]; FLOAT32, FLOAT16; SequenceLengthsTensor: UINT32

    Return the hidden nodes after every step, and those after the last step of each sequence. An
    output that the desc leaves out is not returned.

    There are T steps of N sequences with I inputs each, R directions and H hidden nodes.

    Each direction has two activations f and g, weights W, a recurrence R and biases Wb and Rb. The
    tensors hold the gates in the order z, r, h. A step computes the hidden nodes Ht from its input
    Xt and from the hidden nodes Ht-1 of the step before:

        zt = f(Xt Wz + Ht-1 Rz + Wbz + Rbz)
        rt = f(Xt Wr + Ht-1 Rr + Wbr + Rbr)
        ht = g(Xt Wh + (rt Ht-1) Rh + Wbh + Rbh),
            or with LinearBeforeReset g(Xt Wh + rt (Ht-1 Rh + Rbh) + Wbh)
        Ht = (1 - zt) ht + zt Ht-1

    If ht or Ht-1 is infinite, the last equation gives an infinity, or NaN from 0 times infinity.
    DirectML 1.8.0 replaces infinities there by finite numbers, and 1.15.4 does not, so any value is
    right for these elements.

    The hidden nodes after the end of a sequence are 0. A backward direction reads each sequence
    from its own end. For a sequence of length 0 a forward direction returns hidden nodes of 0, and
    a backward one returns those of HiddenInitTensor.

    Source: the ONNX operator GRU, since the page of DML_GRU_OPERATOR_DESC has its equations as
    pictures; the order of gates and lengths were measured.
    """
    return values(desc, gru_direction)


def gru_direction(
    desc: GruDesc, arithmetic: Arithmetic, index: int, sequences: Sequences, backward: bool
) -> tuple[Values, State]:
    """Return the hidden nodes of one direction after every step, and those after the last step."""
    gates = Gates.of(desc.WeightTensor, desc.RecurrenceTensor, desc.BiasTensor, index)
    f, g = Activation.each(desc.ActivationDescs[2 * index : 2 * index + 2])
    part_z, part_r, part_h = (gates.part(gate) for gate in range(3))
    both = slice(0, 2 * gates.hidden)
    of_weights, of_recurrence = gates.biases
    recurrence_both, recurrence_h = gates.recurrence[:, both], gates.recurrence[:, part_h]
    hold = arithmetic.held

    def step(sums: Values, state: State) -> State:
        (hidden,) = state
        product = hold(hidden.times_matrix(recurrence_both), "product")
        gated = hold(arithmetic.activated(hold(sums[:, both] + product, "sum of gates"), f), "gate")
        zt, rt = gated[:, part_z], gated[:, part_r]
        if desc.LinearBeforeReset:
            product = hold(hidden.times_matrix(recurrence_h), "product")
            if desc.BiasTensor is not None:
                product = arithmetic.with_bias(product, of_recurrence[part_h], "product with bias")
            reset = hold(rt * product, "reset product")
        else:
            reset_state = replace(hold(rt * hidden, "reset state"), absent=hidden.absent)
            reset = hold(reset_state.times_matrix(recurrence_h), "product")
        ht = hold(arithmetic.activated(hold(sums[:, part_h] + reset, "sum of h"), g), "gate")
        mixed = hold(zt.complement() * ht, "share") + hold(zt * hidden, "share")
        return (arithmetic.undefined(mixed, _of_infinite_operands(mixed, zt, ht, hidden)),)

    first = initial(desc.HiddenInitTensor, index, sequences, gates.hidden, backward, arithmetic)
    biases = []
    if desc.BiasTensor is not None:
        of_sums = of_recurrence.copy()
        if desc.LinearBeforeReset:
            of_sums[part_h] = 0
        biases = [of_weights, of_sums]
    sums = arithmetic.weighted(sequences.values, gates.weight, biases)
    return sequences.run(step, sums, (first,), backward, arithmetic)


def _of_infinite_operands(result: Values, *operands: Values) -> Array:
    """Return which elements are infinite or NaN because an operand is infinite, and not NaN."""
    each = [operand.value for operand in operands]
    infinite = np.logical_or.reduce([np.isinf(value) for value in each])
    nan = np.logical_or.reduce([np.isnan(value) for value in each])
    where: Array = ~np.isfinite(result.value) & infinite & ~nan
    return where
