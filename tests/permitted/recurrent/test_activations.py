"""Recurrent layers whose values overflow, underflow or are infinite have several right results.

The tested code is in `dmlconf/permitted/recurrent/quantity.py` and
`dmlconf/permitted/recurrent/gru.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.recurrent.quantity import Quantity
from dmlconf.reference.activation.fused import Activation
from tests.permitted.graphs.accepted import accepts, single

GRU = """InputTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [-1.0e-22, 2.0e-22]},
  WeightTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, 0, 1]},
  RecurrenceTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, -1, 1]},
  OutputSequenceTensor: {Sizes: [2, 1, 1, 1], DataType: FLOAT32}, Direction: FORWARD,
  LinearBeforeReset: true, ActivationDescs: [{operator: ACTIVATION_GELU},
  {operator: ACTIVATION_SCALED_ELU, Alpha: 2, Gamma: 0.25}]"""


def test_elu_of_an_argument_near_0_may_be_negative(tmp_path: Path) -> None:
    """DirectML gives -2^-25 in both steps."""
    case = single(tmp_path, "GRU", GRU)
    for values in ([0, 2e-22], [-(2.0**-25), -(2.0**-25)], [-(2.0**-25), 2e-22]):
        assert accepts(case, "OutputSequenceTensor", values), values
    for values in ([0, 1e-5], [1e-5, 2e-22]):
        assert not accepts(case, "OutputSequenceTensor", values), values


RESET = """InputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}},
  WeightTensor: {{Sizes: [1, 1, 6, 1], DataType: FLOAT32, values: [0, 0, {reset}, 1, 0, 0]}},
  RecurrenceTensor: {{Sizes: [1, 1, 6, 2], DataType: FLOAT32, fill: {{constant: {{value: 0}}}}}},
  HiddenInitTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1.0e+30, 1]}},
  OutputSingleTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32}}, Direction: FORWARD,
  LinearBeforeReset: false, ActivationDescs: [{{operator: ACTIVATION_IDENTITY}},
  {{operator: ACTIVATION_SOFTSIGN}}]"""


def test_overflowing_state_times_zero_may_be_nan(tmp_path: Path) -> None:
    """Measured on DirectML: 1e20 times the state 1e30 is infinite, and NaN with a weight of 0."""
    nan = float("nan")
    overflowing = single(tmp_path, "GRU", RESET.format(reset="1.0e+20"))
    assert accepts(overflowing, "OutputSingleTensor", [nan, nan])
    finite = single(tmp_path, "GRU", RESET.format(reset="1.0e+5"))
    assert not accepts(finite, "OutputSingleTensor", [nan, nan])
    assert accepts(finite, "OutputSingleTensor", [0, 0])


MIXTURE = """InputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [{input}]}},
  WeightTensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [-1, -1, 1]}},
  RecurrenceTensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, 0, 0]}},
  HiddenInitTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [3]}},
  OutputSingleTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}}, Direction: FORWARD,
  LinearBeforeReset: true, ActivationDescs: [
  {{operator: ACTIVATION_HARD_SIGMOID, Alpha: 0.25, Beta: 0.5}},
  {{operator: ACTIVATION_IDENTITY}}]"""


def test_state_with_zero_times_infinity_may_be_nan_or_finite(tmp_path: Path) -> None:
    """The state is 0 * -infinity + 1 * 3. DirectML 1.15.4 gives NaN, 1.8.0 a finite number."""
    infinite = single(tmp_path, "GRU", MIXTURE.format(input="-.inf"))
    assert accepts(infinite, "OutputSingleTensor", [float("nan")])
    assert accepts(infinite, "OutputSingleTensor", [3])
    finite = single(tmp_path, "GRU", MIXTURE.format(input="-7"))
    assert accepts(finite, "OutputSingleTensor", [3])
    assert not accepts(finite, "OutputSingleTensor", [float("nan")])


RECTIFIED = """InputTensor: {{Sizes: [1, 1, 1, 1], DataType: {type}, values: [0]}},
  WeightTensor: {{Sizes: [1, 1, 3, 1], DataType: {type}, values: [0, 0, 0]}},
  RecurrenceTensor: {{Sizes: [1, 1, 3, 1], DataType: {type}, values: [0, 0, -.inf]}},
  HiddenInitTensor: {{Sizes: [1, 1, 1, 1], DataType: {type}, values: [3]}},
  OutputSingleTensor: {{Sizes: [1, 1, 1, 1], DataType: {type}}}, Direction: FORWARD,
  LinearBeforeReset: true, ActivationDescs: [
  {{operator: ACTIVATION_SIGMOID}}, {{operator: ACTIVATION_RELU}}]"""


@pytest.mark.parametrize("data_type", ["FLOAT16", "FLOAT32"])
def test_relu_of_negative_infinity_is_zero_in_recurrent_layers(
    tmp_path: Path, data_type: str
) -> None:
    """DirectML 1.8.0 to 1.15.4 give 0.5 * 0 + 0.5 * 3.

    A RELU fused into another operator gives NaN.
    """
    case = single(tmp_path, "GRU", RECTIFIED.format(type=data_type))
    assert accepts(case, "OutputSingleTensor", [1.5])
    for wrong in (float("nan"), float("-inf"), 0):
        assert not accepts(case, "OutputSingleTensor", [wrong]), wrong


OVERFLOWING = """InputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [.inf]}},
  WeightTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}},
  RecurrenceTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [-3.0e+38]}},
  HiddenInitTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [{state}]}},
  OutputSingleTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}}, Direction: FORWARD,
  ActivationDescs: [{{operator: ACTIVATION_TANH}}]"""


def test_overflowing_product_beside_an_infinity_may_flip_the_sign(tmp_path: Path) -> None:
    """Measured on DirectML: RNN limits infinity - 2 * 3e38, a NaN, to the least number."""
    overflowing = single(tmp_path, "RNN", OVERFLOWING.format(state=2))
    assert accepts(overflowing, "OutputSingleTensor", [1])
    assert accepts(overflowing, "OutputSingleTensor", [-1])
    finite = single(tmp_path, "RNN", OVERFLOWING.format(state=1))
    assert accepts(finite, "OutputSingleTensor", [1])
    assert not accepts(finite, "OutputSingleTensor", [-1])


NEW_STATE = """InputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}},
  WeightTensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [9, 0, 2]}},
  RecurrenceTensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, 0, 0]}},
  HiddenInitTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [3]}},
  OutputSingleTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}}, Direction: FORWARD,
  LinearBeforeReset: false, ActivationDescs: [
  {{operator: ACTIVATION_HARD_SIGMOID, Alpha: 1, Beta: 0}},
  {{operator: ACTIVATION_LINEAR, Alpha: {slope}, Beta: 0}}]"""


def test_overflowing_activation_times_zero_may_be_nan(tmp_path: Path) -> None:
    """Measured on DirectML: 2 * 3e38 is infinite, and times 0 it is NaN."""
    overflowing = single(tmp_path, "GRU", NEW_STATE.format(slope="3.0e+38"))
    assert accepts(overflowing, "OutputSingleTensor", [float("nan")])
    assert accepts(overflowing, "OutputSingleTensor", [3])
    finite = single(tmp_path, "GRU", NEW_STATE.format(slope="1.0e+38"))
    assert accepts(finite, "OutputSingleTensor", [3])
    assert not accepts(finite, "OutputSingleTensor", [float("nan")])


SUBNORMAL = """InputTensor: {{Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [{input}, 0]}},
  WeightTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [3.0e-21]}},
  RecurrenceTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1.0e+38]}},
  OutputSingleTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}}, Direction: FORWARD,
  ActivationDescs: [{{operator: ACTIVATION_LINEAR, Alpha: 1, Beta: 0}}]"""


def test_subnormal_state_has_fewer_digits_or_counts_as_zero(tmp_path: Path) -> None:
    """9e-41 has 16 bits in FLOAT32, and 9e-38 has 24."""
    subnormal = single(tmp_path, "RNN", SUBNORMAL.format(input="3.0e-20"))
    for right in (0.009, 0.00900005, 0):
        assert accepts(subnormal, "OutputSingleTensor", [right]), right
    assert not accepts(subnormal, "OutputSingleTensor", [0.09])
    normal = single(tmp_path, "RNN", SUBNORMAL.format(input="3.0e-17"))
    assert accepts(normal, "OutputSingleTensor", [9])
    for wrong in (9.00005, 0):
        assert not accepts(normal, "OutputSingleTensor", [wrong]), wrong


def test_huge_error_of_sums_leaves_error_of_stores_unchanged() -> None:
    """TANH has a slope of at most 1; the store of its argument adds 0.5."""
    scale = ErrorScale(np.array([[2.0**140]]), stored=np.array([[1.0]]))
    (tanh,) = Activation.each([{"operator": "ACTIVATION_TANH"}])
    state = Quantity(np.array([[0.5]]), scale).activated(tanh, np.dtype(np.float16))
    stored = state.error_scale.stored
    assert stored is not None
    assert stored.tolist() == [[1 + 0.5]]


INFINITE_SLOPE = """InputTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [1, 1]},
  WeightTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [0, 1]},
  RecurrenceTensor: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [0, 0, 0, 0.1]},
  BiasTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [0, 1000, 0, -1000.9]},
  OutputSingleTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}, Direction: FORWARD,
  ActivationDescs: [{operator: ACTIVATION_LEAKY_RELU, Alpha: -.inf}]"""


def test_an_exact_zero_stays_exact_after_an_infinite_slope(tmp_path: Path) -> None:
    """The first node is 0, and the second 1.1 * (1 + 1000 - 1000.9)."""
    case = single(tmp_path, "RNN", INFINITE_SLOPE)
    bias = 1000 - float(np.float32(1000.9))
    expected = (1 + bias) * 1.1
    rounding = 1000 * 2**-24
    for right in (expected, expected + rounding, expected - rounding):
        assert accepts(case, "OutputSingleTensor", [0, right]), right
    assert not accepts(case, "OutputSingleTensor", [0, expected + 0.01])
    assert not accepts(case, "OutputSingleTensor", [1e-30, expected])


UNDERFLOWING_GATE = """InputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}},
  WeightTensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, {reset}, 0]}},
  RecurrenceTensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [0, 0, .inf]}},
  HiddenInitTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [3]}},
  OutputSingleTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}}, Direction: FORWARD,
  LinearBeforeReset: true, ActivationDescs: [
  {{operator: ACTIVATION_SIGMOID}}, {{operator: ACTIVATION_TANH}}]"""


def test_underflowing_gate_times_infinity_may_be_nan(tmp_path: Path) -> None:
    """Measured: the sigmoid of -200 is 0 in FLOAT32, and 0 times infinity is NaN.

    A kernel without underflow gives 0.5 * tanh(infinity) + 0.5 * 3.
    """
    underflowing = single(tmp_path, "GRU", UNDERFLOWING_GATE.format(reset=-200))
    assert accepts(underflowing, "OutputSingleTensor", [float("nan")])
    assert accepts(underflowing, "OutputSingleTensor", [2])
    small = single(tmp_path, "GRU", UNDERFLOWING_GATE.format(reset=-20))
    assert accepts(small, "OutputSingleTensor", [2])
    assert not accepts(small, "OutputSingleTensor", [float("nan")])


UNDERFLOWING_STATE = """
  InputTensor: {{Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [{first}, 1]}},
  WeightTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}},
  RecurrenceTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [.inf]}},
  OutputSingleTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}}, Direction: FORWARD,
  ActivationDescs: [{{operator: ACTIVATION_SIGMOID}}]"""


@pytest.mark.parametrize(("first", "underflows"), [(-450, True), (-20, False)])
def test_underflowing_state_times_an_infinite_weight_may_be_nan(
    tmp_path: Path, first: float, underflows: bool
) -> None:
    """The sigmoid of -450 is 0 in FLOAT32."""
    case = single(tmp_path, "RNN", UNDERFLOWING_STATE.format(first=first))
    assert accepts(case, "OutputSingleTensor", [1])
    assert accepts(case, "OutputSingleTensor", [np.nan]) == underflows
