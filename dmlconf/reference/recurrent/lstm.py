"""Long short-term memory."""

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

__all__ = ["lstm", "lstm_error_scale"]


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
    ActivationDescs: Sequence[Mapping[str, Any]],
    Direction: str,
    ClipThreshold: float,
    UseClipThreshold: bool,
    CoupleInputForget: bool,
) -> tuple[Array, ...]:
    """InputTensor {1, T, N, I}, WeightTensor {1, R, 4 * H, I}, RecurrenceTensor {1, R, 4 * H, H},
    [BiasTensor {1, 1, R, 8 * H}], [HiddenInitTensor {1, R, N, H}],
    [CellMemInitTensor {1, R, N, H}], [SequenceLengthsTensor {1, 1, 1, N}],
    [PeepholeTensor {1, 1, R, 3 * H}] -> [OutputSequenceTensor {T, R, N, H}],
    [OutputSingleTensor {1, R, N, H}], [OutputCellSingleTensor {1, R, N, H}]; FLOAT32, FLOAT16;
    SequenceLengthsTensor: UINT32

    Return all hidden nodes, the last of each sequence, and its last cell, as far as wanted.

    There are T steps of N sequences with I inputs each, R directions and H hidden nodes.

    Each direction has the activations f, g and h. Of a step's input Xt, and the hidden nodes Ht-1
    and the cell Ct-1 before it, with the weights W, the recurrence R, the biases Wb and Rb of the
    gates in the order i, o, f, c, and the peepholes P:

        it = f(Xt Wi + Ht-1 Ri + Wbi + Rbi + Pi Ct-1)
        ft = f(Xt Wf + Ht-1 Rf + Wbf + Rbf + Pf Ct-1), or with CoupleInputForget 1 - it
        ct = g(Xt Wc + Ht-1 Rc + Wbc + Rbc)
        Ct = ft Ct-1 + it ct
        ot = f(Xt Wo + Ht-1 Ro + Wbo + Rbo + Po Ct)
        Ht = ot h(Ct)

    Clipping bounds what f and g take. Behind the end of a sequence all is 0. Backward, each
    sequence is read from its own end. A sequence of length 0 leaves hidden nodes of 0 and a cell
    changed once; backward it leaves both as they were at first. Where there is one step only, the
    forward hidden nodes behind it are returned for every length, else 0 for lengths beyond the end.

    Source: the ONNX operator LSTM, since the page of DML_LSTM_OPERATOR_DESC has its equations as
    pictures; the order of gates, clipping and lengths were measured.
    """
    outputs = _layer(
        False, InputTensor, WeightTensor, RecurrenceTensor, BiasTensor, HiddenInitTensor,
        CellMemInitTensor, SequenceLengthsTensor, PeepholeTensor, ActivationDescs, Direction,
        ClipThreshold if UseClipThreshold else LARGEST, CoupleInputForget,
    )  # fmt: skip
    return values_of(outputs, (OutputSequenceTensor, OutputSingleTensor, OutputCellSingleTensor))


def lstm_error_scale(
    ClipThreshold: float,
    UseClipThreshold: bool,
    OutputSequenceTensor: TensorDesc | None,
    OutputSingleTensor: TensorDesc | None,
    OutputCellSingleTensor: TensorDesc | None,
    **arguments: Any,
) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs of `lstm`, for the same arguments.

    Derived in docs/bounds.md, Recurrent layers.
    """
    clip = ClipThreshold if UseClipThreshold else LARGEST
    outputs = _layer(True, clip=clip, **arguments)
    terms = 3 + arguments["InputTensor"].shape[3] + arguments["RecurrenceTensor"].shape[3]
    with np.errstate(all="ignore"):
        return error_scales_of(
            outputs, (OutputSequenceTensor, OutputSingleTensor, OutputCellSingleTensor), terms
        )


def _layer(
    followed: bool,
    InputTensor: Array,
    WeightTensor: Array,
    RecurrenceTensor: Array,
    BiasTensor: Array | None,
    HiddenInitTensor: Array | None,
    CellMemInitTensor: Array | None,
    SequenceLengthsTensor: Array | None,
    PeepholeTensor: Array | None,
    ActivationDescs: Sequence[Mapping[str, Any]],
    Direction: str,
    clip: float,
    CoupleInputForget: bool,
) -> tuple[Quantity, ...]:
    def direction(index: int, sequences: Sequences, backward: bool) -> tuple[Quantity, State]:
        gates = Gates.of(WeightTensor, RecurrenceTensor, BiasTensor, index)
        f, g, h = Activation.each(ActivationDescs[3 * index : 3 * index + 3])
        part_i, part_o, part_f, part_c = (gates.part(gate) for gate in range(4))
        peepholes = None if PeepholeTensor is None else PeepholeTensor[0, 0, index]
        if peepholes is not None:
            seen_by_i, seen_by_o, seen_by_f = (
                Quantity(row, ErrorScale(np.zeros_like(row)))
                for row in peepholes.astype(np.float64).reshape(3, 1, gates.hidden)
            )

        def gate(sums: Quantity, activation: Activation) -> Quantity:
            return sums.clipped(clip).activated(activation, InputTensor.dtype)

        def step(sums: Quantity, state: State) -> State:
            hidden, cell = state
            # Measured: FLOAT16 holds it before the sums of the input are added.
            sums = sums + hidden.times_matrix(gates.recurrence).stored(InputTensor.dtype)
            if peepholes is None:
                # Without them all gates are known before the new cell is, and are computed at once.
                gated = gate(sums[:, : part_f.stop], f)
                it, ot, ft = gated[:, part_i], gated[:, part_o], gated[:, part_f]
            else:
                it = gate(sums[:, part_i] + seen_by_i * cell, f)
                ft = gate(sums[:, part_f] + seen_by_f * cell, f)
            if CoupleInputForget:
                ft = it.complement()
            ct = gate(sums[:, part_c], g)
            new_cell = ft * cell + it * ct
            if peepholes is not None:
                ot = gate(sums[:, part_o] + seen_by_o * new_cell, f)
            return ot * new_cell.activated(h, InputTensor.dtype), new_cell

        first = (
            initial(HiddenInitTensor, index, sequences, gates.hidden, backward),
            initial(CellMemInitTensor, index, sequences, gates.hidden, backward),
        )
        # Measured: FLOAT16 holds it before the product of the hidden nodes is added.
        bias = gates.biases[0] + gates.biases[1]
        exact = sequences.exact_sums(gates, bias)
        sums = with_bias(sequences.weighted(gates), bias, InputTensor.dtype, exact=exact)
        return sequences.run(step, sums, first, backward)

    sequences = Sequences.of(InputTensor, SequenceLengthsTensor, followed)
    with np.errstate(all="ignore"):
        return in_directions(Direction, sequences, direction)
