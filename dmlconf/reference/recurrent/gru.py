"""GRU, the gated recurrent unit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.fields import of_fields
from dmlconf.reference.recurrent.layers import reference_outputs
from dmlconf.reference.recurrent.rnn import RnnDesc
from dmlconf.reference.recurrent.sequences import Gates, Sequences, initial
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
    """InputTensor {1, T, N, I}, WeightTensor {1, D, 3 * H, I}, RecurrenceTensor {1, D, 3 * H, H},
    [BiasTensor {1, 1, D, 6 * H}], [HiddenInitTensor {1, D, N, H}],
    [SequenceLengthsTensor {1, 1, 1, N}] -> [OutputSequenceTensor {T, D, N, H}],
    [OutputSingleTensor {1, D, N, H}]; FLOAT32, FLOAT16; SequenceLengthsTensor: UINT32

    Return the hidden nodes after every step, and after the last step of each sequence.

    Sizes, directions, absent tensors and sequence lengths are as in `rnn`.

    Each direction has two activations f and g, weights W, a recurrence R and biases Wb and Rb. The
    tensors hold the gates in the order z, r, h. A step computes the hidden nodes Ht from its input
    Xt and from the hidden nodes Ht-1 of the step before. @ multiplies matrices, and * multiplies
    elements:

        zt = f(Xt @ Wz^T + Ht-1 @ Rz^T + Wbz + Rbz)
        rt = f(Xt @ Wr^T + Ht-1 @ Rr^T + Wbr + Rbr)
        ht = g(Xt @ Wh^T + (rt * Ht-1) @ Rh^T + Wbh + Rbh),
            or with LinearBeforeReset g(Xt @ Wh^T + rt * (Ht-1 @ Rh^T + Rbh) + Wbh)
        Ht = (1 - zt) * ht + zt * Ht-1

    BiasTensor holds Wb, then Rb.

    If an infinite zt, ht or Ht-1 makes Ht infinite or NaN, and none of the three is NaN, any value
    is right. Measured: DirectML 1.8.0 gives finite numbers there, and 1.15.4 does not.

    Source: the page of DML_GRU_OPERATOR_DESC for the order of gates and biases; the ONNX operator
    GRU for the equations, which the page shows as pictures; measurements for lengths and
    infinities.
    """
    return reference_outputs(desc, gru_direction)


def gru_direction(
    desc: GruDesc, arithmetic: Arithmetic, index: int, sequences: Sequences, backward: bool
) -> tuple[Values, State]:
    """Compute one direction, as `layers.Direction` describes."""
    gates = Gates.of(desc.WeightTensor, desc.RecurrenceTensor, desc.BiasTensor, index)
    f, g = Activation.each(desc.ActivationDescs[2 * index : 2 * index + 2])
    part_z, part_r, part_h = (gates.part(gate) for gate in range(3))
    z_and_r = slice(0, 2 * gates.hidden)
    recurrence_zr, recurrence_h = gates.recurrence[:, z_and_r], gates.recurrence[:, part_h]
    bias_h = gates.biases[1][part_h]
    hold = arithmetic.held

    def gate(sums: Values, activation: Activation, site: str) -> Values:
        return hold(arithmetic.activated(hold(sums, site), activation), "gate")

    def reset(hidden: Values, rt: Values) -> Values:
        """Return (rt * Ht-1) @ Rh^T, or with LinearBeforeReset rt * (Ht-1 @ Rh^T + Rbh)."""
        if desc.LinearBeforeReset:
            product = hold(hidden.times_matrix(recurrence_h), "product of h")
            if desc.BiasTensor is not None:
                product = arithmetic.with_bias(product, bias_h, "product with bias")
            return hold(rt * product, "reset product")
        reset_state = replace(hold(rt * hidden, "reset state"), absent=hidden.absent)
        return hold(reset_state.times_matrix(recurrence_h), "product")

    def step(sums: Values, state: State) -> State:
        (hidden,) = state
        product = hold(hidden.times_matrix(recurrence_zr), "product")
        gated = gate(sums[:, z_and_r] + product, f, "sum of gates")
        zt, rt = gated[:, part_z], gated[:, part_r]
        ht = gate(sums[:, part_h] + reset(hidden, rt), g, "sum of h")
        mixed = hold(zt.complement() * ht, "share") + hold(zt * hidden, "share")
        return (arithmetic.undefined(mixed, _of_infinite_operands(mixed, zt, ht, hidden)),)

    first = initial(desc.HiddenInitTensor, index, sequences, gates.hidden, backward, arithmetic)
    sums = arithmetic.weighted(sequences.values, gates.weight, _biases_of_sums(desc, gates))
    return sequences.run(step, sums, (first,), backward, arithmetic)


def _biases_of_sums(desc: GruDesc, gates: Gates) -> list[Array]:
    """Return the biases that are added to the products of the input.

    With LinearBeforeReset, rt multiplies Rbh, which is left out.
    """
    if desc.BiasTensor is None:
        return []
    of_weights, of_recurrence = gates.biases
    if desc.LinearBeforeReset:
        of_recurrence = of_recurrence.copy()
        of_recurrence[gates.part(2)] = 0
    return [of_weights, of_recurrence]


def _of_infinite_operands(result: Values, *operands: Values) -> Array:
    """Return where a result is infinite or NaN, some operand is infinite, and no operand is NaN."""
    each = [operand.value for operand in operands]
    infinite = np.logical_or.reduce([np.isinf(value) for value in each])
    nan = np.logical_or.reduce([np.isnan(value) for value in each])
    where: Array = ~np.isfinite(result.value) & infinite & ~nan
    return where
