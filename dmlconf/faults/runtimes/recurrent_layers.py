"""Outputs of recurrent layers whose activations a runtime computes in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed, of_operators
from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.evaluation import arguments
from dmlconf.reference.recurrent.gru import GruDesc, gru_direction
from dmlconf.reference.recurrent.layers import layer_outputs
from dmlconf.reference.recurrent.lstm import LstmDesc, lstm_direction
from dmlconf.reference.recurrent.rnn import RnnDesc, rnn_direction
from dmlconf.reference.recurrent.values import Arithmetic, ExactArithmetic, Values
from dmlconf.tensors.datatypes import Array

__all__ = ["layer_results", "softplus_of_infinite_powers"]

_LAYERS: Final[Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "GRU": (GruDesc, gru_direction),
    "LSTM": (LstmDesc, lstm_direction),
    "RNN": (RnnDesc, rnn_direction),
}
_OUTPUTS: Final = ("OutputSequenceTensor", "OutputSingleTensor", "OutputCellSingleTensor")

_LARGEST_EXPONENT: Final = float(np.log(np.finfo(np.float32).max))
"""Above this number, about 88.72, exp is infinite in FLOAT32."""


def layer_results(case: Case, arithmetic: Arithmetic) -> dict[str, Array]:
    """Return the outputs of GRU, LSTM or RNN as an arithmetic computes them, FLOAT64, by tensor."""
    desc_of, direction = _LAYERS[case.operator_name]
    desc = desc_of(**arguments(case.entry, case, case.inputs()))
    results = zip(_OUTPUTS, layer_outputs(desc, direction, arithmetic), strict=False)
    return {name: each.value for name, each in results if name in case.outputs()}


@of_operators(*_LAYERS)
def softplus_of_infinite_powers(case: Case) -> Computed | None:
    """Return a layer's outputs if softplus is log(1 + exp(x)) in FLOAT32: infinity for 100."""
    results = layer_results(case, _InfinitePowers())
    with np.errstate(over="ignore"):
        return Computed(
            {
                name: results[name].astype(tensor.DataType.dtype).reshape(tensor.Sizes)
                for name, tensor in case.outputs().items()
            }
        )


class _InfinitePowers(ExactArithmetic):
    """An arithmetic whose softplus is infinite where exp overflows FLOAT32."""

    def activated(self, sums: Values, activation: Activation) -> Values:
        values = activation.formula(sums.value)
        if activation.desc["operator"] == "ACTIVATION_SOFTPLUS":
            values = np.where(sums.value > _LARGEST_EXPONENT, np.inf, values)
        return Values(values)
