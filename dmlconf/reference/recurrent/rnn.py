"""RNN, the recurrent layer with one equation and no gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.fields import of_fields
from dmlconf.reference.recurrent.layers import reference_outputs
from dmlconf.reference.recurrent.sequences import Gates, Sequences, initial
from dmlconf.reference.recurrent.values import Arithmetic, State, Values
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32

__all__ = [
    "RnnDesc",
    "rnn",
    "rnn_direction",
]


@dataclass(frozen=True, slots=True)
class RnnDesc:
    """The fields of DML_RNN_OPERATOR_DESC."""

    InputTensor: Array
    WeightTensor: Array
    RecurrenceTensor: Array
    BiasTensor: Array | None
    HiddenInitTensor: Array | None
    SequenceLengthsTensor: Array | None
    OutputSequenceTensor: TensorDesc | None
    OutputSingleTensor: TensorDesc | None
    ActivationDescs: Sequence[Mapping[str, Any]]
    Direction: str

    @property
    def outputs(self) -> tuple[TensorDesc | None, ...]:
        """The descs of both outputs: the hidden nodes after every step, and after the last step."""
        return self.OutputSequenceTensor, self.OutputSingleTensor


@of_fields(RnnDesc)
def rnn(desc: RnnDesc) -> tuple[Array, ...]:
    """InputTensor {1, T, N, I}, WeightTensor {1, D, H, I}, RecurrenceTensor {1, D, H, H},
    [BiasTensor {1, 1, D, 2 * H}], [HiddenInitTensor {1, D, N, H}],
    [SequenceLengthsTensor {1, 1, 1, N}] -> [OutputSequenceTensor {T, D, N, H}],
    [OutputSingleTensor {1, D, N, H}]; FLOAT32, FLOAT16; SequenceLengthsTensor: UINT32

    Return the hidden nodes after every step, and those after the last step of each sequence.

    There are T steps of N sequences with I inputs each, D directions and H hidden nodes. With
    BIDIRECTIONAL D is 2, and the forward direction is first; otherwise D is 1.

    Each direction has an activation f, weights W, a recurrence R and biases Wb and Rb. A step
    computes the hidden nodes Ht from its input Xt and from the hidden nodes Ht-1 of the step
    before. @ multiplies matrices:

        Ht = f(Xt @ W^T + Ht-1 @ R^T + Wb + Rb)

    BiasTensor holds Wb, then Rb; absent biases and initial hidden nodes are 0. `initial` describes
    the product of absent hidden nodes with an infinite recurrence. The argument of f is clipped to
    the finite FLOAT32 numbers; NaN becomes the lowest of them.

    OutputSequenceTensor is 0 after the end of a sequence. In a forward direction OutputSingleTensor
    is 0 for a length of 0, and any value is right for a length above T. But if T is 1, it has the
    hidden nodes of that step for every length. A backward direction reads each sequence from its
    own end, and returns HiddenInitTensor for a length of 0.

    Source: the page of DML_RNN_OPERATOR_DESC for the order of biases; the ONNX operator RNN for the
    equation, which the page shows as a picture; measurements for clipping and lengths.
    """
    return reference_outputs(desc, rnn_direction)


def rnn_direction(
    desc: RnnDesc, arithmetic: Arithmetic, index: int, sequences: Sequences, backward: bool
) -> tuple[Values, State]:
    """Compute one direction; `layers.Direction` says what is taken and returned."""
    gates = Gates.of(desc.WeightTensor, desc.RecurrenceTensor, desc.BiasTensor, index)
    (f,) = Activation.each(desc.ActivationDescs[index : index + 1])

    def step(sums: Values, state: State) -> State:
        (hidden,) = state
        product = arithmetic.held(hidden.times_matrix(gates.recurrence), "product")
        return (arithmetic.activated((sums + product).clipped(LARGEST_FLOAT32), f),)

    first = initial(desc.HiddenInitTensor, index, sequences, gates.hidden, backward, arithmetic)
    biases = () if desc.BiasTensor is None else gates.biases
    sums = arithmetic.weighted(sequences.values, gates.weight, biases)
    return sequences.run(step, sums, (first,), backward, arithmetic)
