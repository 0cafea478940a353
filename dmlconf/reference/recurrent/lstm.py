"""LSTM, long short-term memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.recurrent.layers import reference_outputs
from dmlconf.reference.recurrent.sequences import Gates, Sequences, initial
from dmlconf.reference.recurrent.values import Arithmetic, State, Values
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32

__all__ = [
    "LstmDesc",
    "lstm",
    "lstm_direction",
]


@dataclass(frozen=True, slots=True)
class LstmDesc:
    """The fields of DML_LSTM_OPERATOR_DESC."""

    InputTensor: Array
    WeightTensor: Array
    RecurrenceTensor: Array
    BiasTensor: Array | None
    HiddenInitTensor: Array | None
    CellMemInitTensor: Array | None
    SequenceLengthsTensor: Array | None
    PeepholeTensor: Array | None
    OutputSequenceTensor: TensorDesc | None
    OutputSingleTensor: TensorDesc | None
    OutputCellSingleTensor: TensorDesc | None
    ActivationDescs: Sequence[Mapping[str, Any]]
    Direction: str
    ClipThreshold: float
    UseClipThreshold: bool
    CoupleInputForget: bool

    @property
    def outputs(self) -> tuple[TensorDesc | None, ...]:
        """The descs of the hidden nodes after every step and after the last, and of the cell."""
        return self.OutputSequenceTensor, self.OutputSingleTensor, self.OutputCellSingleTensor


@of_fields(LstmDesc)
def lstm(desc: LstmDesc) -> tuple[Array, ...]:
    """InputTensor {1, T, N, I}, WeightTensor {1, D, 4 * H, I}, RecurrenceTensor {1, D, 4 * H, H},
    [BiasTensor {1, 1, D, 8 * H}], [HiddenInitTensor {1, D, N, H}],
    [CellMemInitTensor {1, D, N, H}], [SequenceLengthsTensor {1, 1, 1, N}],
    [PeepholeTensor {1, 1, D, 3 * H}] -> [OutputSequenceTensor {T, D, N, H}],
    [OutputSingleTensor {1, D, N, H}], [OutputCellSingleTensor {1, D, N, H}]; FLOAT32, FLOAT16;
    SequenceLengthsTensor: UINT32

    Return the hidden nodes after every step, and the hidden nodes and the cell after the last step
    of each sequence.

    Sizes, directions, absent tensors and sequence lengths are as in `rnn`.

    Each direction has activations f, g and h, weights W, a recurrence R, biases Wb and Rb, and
    peepholes P. The tensors hold the gates in the order i, o, f, c, and the peepholes in the order
    i, o, f. A step computes the cell Ct and the hidden nodes Ht from its input Xt, and from Ct-1
    and Ht-1 of the step before. @ multiplies matrices, and * multiplies elements:

        it = f(Xt @ Wi^T + Ht-1 @ Ri^T + Wbi + Rbi + Pi * Ct-1)
        ft = f(Xt @ Wf^T + Ht-1 @ Rf^T + Wbf + Rbf + Pf * Ct-1),
            or with CoupleInputForget 1 - it
        ct = g(Xt @ Wc^T + Ht-1 @ Rc^T + Wbc + Rbc)
        Ct = ft * Ct-1 + it * ct
        ot = f(Xt @ Wo^T + Ht-1 @ Ro^T + Wbo + Rbo + Po * Ct)
        Ht = ot * h(Ct)

    BiasTensor holds Wb, then Rb; absent peepholes and cells are 0. The arguments of f and g are
    clipped to -ClipThreshold and ClipThreshold, and without UseClipThreshold to the finite FLOAT32
    numbers. NaN becomes the lower bound. The argument of h is not clipped.

    For a length of 0, OutputCellSingleTensor has the cell after the first step in a forward
    direction, and CellMemInitTensor in a backward direction.

    Source: the page of DML_LSTM_OPERATOR_DESC for clipping and the order of gates, biases and
    peepholes; the ONNX operator LSTM for the equations, which the page shows as pictures;
    measurements for the argument of h, NaN and lengths.
    """
    return reference_outputs(desc, lstm_direction)


def lstm_direction(
    desc: LstmDesc, arithmetic: Arithmetic, index: int, sequences: Sequences, backward: bool
) -> tuple[Values, State]:
    """Compute one direction, as `layers.Direction` describes."""
    clip = single(desc.ClipThreshold) if desc.UseClipThreshold else LARGEST_FLOAT32
    gates = Gates.of(desc.WeightTensor, desc.RecurrenceTensor, desc.BiasTensor, index)
    f, g, h = Activation.each(desc.ActivationDescs[3 * index : 3 * index + 3])
    part_i, part_o, part_f, part_c = (gates.part(gate) for gate in range(4))
    peepholes = None if desc.PeepholeTensor is None else desc.PeepholeTensor[0, 0, index]
    if peepholes is not None:
        rows = peepholes.astype(np.float64).reshape(3, 1, gates.hidden)
        seen_by_i, seen_by_o, seen_by_f = map(arithmetic.exact, rows)

    def gate(sums: Values, activation: Activation) -> Values:
        return arithmetic.activated(sums.clipped(clip), activation)

    def step(sums: Values, state: State) -> State:
        hidden, cell = state
        sums = sums + arithmetic.held(hidden.times_matrix(gates.recurrence), "product")
        if peepholes is None:
            # Without peepholes, o does not depend on the new cell.
            gated = gate(sums[:, : part_f.stop], f)
            it, ot, ft = gated[:, part_i], gated[:, part_o], gated[:, part_f]
        else:
            it = gate(sums[:, part_i] + seen_by_i * cell, f)
            ft = gate(sums[:, part_f] + seen_by_f * cell, f)
        if desc.CoupleInputForget:
            it = it.common()
            ft = it.complement()
        ct = gate(sums[:, part_c], g)
        new_cell = ft * cell + it * ct
        if peepholes is not None:
            new_cell = new_cell.common()
            ot = gate(sums[:, part_o] + seen_by_o * new_cell, f)
        return ot * arithmetic.activated(new_cell, h), new_cell

    hidden, cell = (
        initial(tensor, index, sequences, gates.hidden, backward, arithmetic)
        for tensor in (desc.HiddenInitTensor, desc.CellMemInitTensor)
    )
    sums = arithmetic.weighted(sequences.values, gates.weight, gates.biases)
    return sequences.run(step, sums, (hidden, cell), backward, arithmetic)
