"""Activations in recurrent layers of values that may be on either side of a kink."""

from __future__ import annotations

from pathlib import Path

from tests.permitted.graphs.accepted import accepts, single

GRU = """InputTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [-1.0e-22, 2.0e-22]},
  WeightTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, 0, 1]},
  RecurrenceTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, -1, 1]},
  OutputSequenceTensor: {Sizes: [2, 1, 1, 1], DataType: FLOAT32}, Direction: FORWARD,
  LinearBeforeReset: true, ActivationDescs: [{operator: ACTIVATION_GELU},
  {operator: ACTIVATION_SCALED_ELU, Alpha: 2, Gamma: 0.25}]"""


def test_an_elu_errs_as_below_zero_where_its_argument_may_be_there(tmp_path: Path) -> None:
    """As measured: 2^-25 is half of what exp errs by beside 1, in both steps."""
    case = single(tmp_path, "GRU", GRU)
    for values in ([0, 2e-22], [-(2.0**-25), -(2.0**-25)], [-(2.0**-25), 2e-22]):
        assert accepts(case, "OutputSequenceTensor", values), values
    for values in ([0, 1e-5], [1e-5, 2e-22]):
        assert not accepts(case, "OutputSequenceTensor", values), values
