"""GRU and RNN pass with the stores in FLOAT16 that DirectML was measured to make.

The tested code is in `dmlconf/permitted/recurrent/kernels.py`,
`dmlconf/permitted/recurrent/quantity.py` and `dmlconf/permitted/recurrent/layers.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.numbers.half import toward_zero
from dmlconf.permitted.recurrent.gru import gru_error_scale
from dmlconf.permitted.recurrent.kernels import Kernel, Kernels
from dmlconf.permitted.recurrent.quantity import Quantity
from dmlconf.permitted.recurrent.rnn import rnn_error_scale
from dmlconf.permitted.recurrent.spread import Spread
from dmlconf.reference.activation.fused import Activation
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.graphs.accepted import accepts, single

RELU = {"operator": "ACTIVATION_RELU"}


def float16(*values: float) -> Array:
    return np.array(values, np.float16)


def store_error(error_scale: ErrorScale) -> float:
    """Return the error that `stored` permits for the first element."""
    assert error_scale.stored is not None
    return float(error_scale.stored.ravel()[0]) * 2.0**-10


def first_elements(error_scale: ErrorScale) -> set[float]:
    """Return the first element of each simulated kernel."""
    return {
        float(float16((least.ravel()[0] + greatest.ravel()[0]) / 2)[0])
        for least, greatest in error_scale.spans
    }


def gru_that_cancels(linear_before_reset: bool) -> ErrorScale:
    """Return the error scale of two hidden nodes; the first is 2,048 + 1 - 2,048."""
    recurrence = float16(0, 0, 0, 0, 0, 0, 0, 0, 2048, 1, 0, 0)
    (result,) = gru_error_scale(
        InputTensor=float16(0).reshape(1, 1, 1, 1),
        WeightTensor=np.zeros((1, 1, 6, 1), np.float16),
        RecurrenceTensor=recurrence.reshape(1, 1, 6, 2),
        BiasTensor=float16(0, 0, 1, 1, 0, 0, 0, 0, 0, 0, -2048, 0).reshape(1, 1, 1, 12),
        HiddenInitTensor=float16(1, 1).reshape(1, 1, 1, 2),
        SequenceLengthsTensor=None,
        OutputSequenceTensor=TensorDesc(DataType.FLOAT16, (1, 1, 1, 2)),
        OutputSingleTensor=None,
        ActivationDescs=[RELU, RELU],
        Direction="FORWARD",
        LinearBeforeReset=linear_before_reset,
    )
    return result


@pytest.mark.parametrize("linear_before_reset", [False, True])
def test_gru_may_store_a_product_before_it_adds_the_bias(linear_before_reset: bool) -> None:
    """2,048 + 1 - 2,048 is 0 on DirectML 1.15.4, which loses the 1 first."""
    assert {0.0, 1.0} <= first_elements(gru_that_cancels(linear_before_reset))


def rnn_of(inputs: float, weight: float, bias: float) -> ErrorScale:
    """Return the error scale of one step of an RNN with one hidden node."""
    (result,) = rnn_error_scale(
        InputTensor=float16(inputs).reshape(1, 1, 1, 1),
        WeightTensor=float16(weight).reshape(1, 1, 1, 1),
        RecurrenceTensor=float16(1).reshape(1, 1, 1, 1),
        BiasTensor=float16(bias, 0).reshape(1, 1, 1, 2),
        HiddenInitTensor=None,
        SequenceLengthsTensor=None,
        OutputSequenceTensor=TensorDesc(DataType.FLOAT16, (1, 1, 1, 1)),
        OutputSingleTensor=None,
        ActivationDescs=[RELU],
        Direction="FORWARD",
    )
    return result


def test_storing_an_exact_sum_loses_nothing() -> None:
    actual = rnn_of(3, 0.25, 0.5)
    assert store_error(actual) == 0
    assert first_elements(actual) == {3 * 0.25 + 0.5}


def test_a_store_may_cut_off_digits_that_float16_lacks() -> None:
    """2,047 * 1.5 + 1 is 3,071.5, and FLOAT16 has only even numbers there."""
    actual = rnn_of(2047, 1.5, 1)
    assert store_error(actual) == 0
    assert first_elements(actual) == {3070, 3072}


def slightly_off() -> Quantity:
    """Return two numbers that may be off by 2^-20."""
    error = Spread.none((2,)).widened(np.full(2, 2.0**-20))
    return Quantity(np.array([1.25, 1.0]), ErrorScale(np.ones(2)), (error, Spread.none((2,))))


def test_error_that_rounding_removes_is_forgotten() -> None:
    after = slightly_off().held(lambda numbers: np.floor(numbers * 2**10 + 0.5) / 2**10)
    assert after.spreads is not None
    single, stored = after.spreads
    np.testing.assert_array_equal(single.limit, 0)
    np.testing.assert_array_equal(stored.limit, 0)


def test_truncation_may_turn_a_small_error_into_a_whole_step() -> None:
    cut = slightly_off().held(lambda numbers: np.floor(numbers * 2**10) / 2**10)
    assert cut.spreads is not None
    np.testing.assert_array_equal(cut.spreads[1].limit, 2.0**-10)


CANCELLING = """InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [2.0078125]},
  WeightTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [3.48828125]},
  RecurrenceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [-3.998046875]},
  BiasTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [1.0048828125, 0]},
  HiddenInitTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [2.001953125]},
  OutputSingleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16}, Direction: FORWARD,
  ActivationDescs: [{operator: ACTIVATION_IDENTITY}]"""


def test_rnn_may_add_the_bias_before_it_stores_the_sum(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives 8.0078 - 8 for 7.0038 + 1.0049 - 8.0039."""
    case = single(tmp_path, "RNN", CANCELLING)
    for right in (0.0048, 0, 0.0078125):
        assert accepts(case, "OutputSingleTensor", [right]), right
    for wrong in (0.0024, 0.0063, 0.01):
        assert not accepts(case, "OutputSingleTensor", [wrong]), wrong


def test_store_truncates_what_float32_has_rounded() -> None:
    """DirectML 1.15.4 stores -1 where a tanh is -0.9999999965, which is -1 in FLOAT32."""
    kernels = Kernels((Kernel(frozenset({"state"}), toward_zero),), np.dtype(np.float16))
    values = np.array([[-0.9999999965, -0.99999, 1e300, -np.inf, np.nan]])
    expected = [[-1.0, -0.99951171875, 65504.0, -np.inf, np.nan]]
    np.testing.assert_array_equal(kernels.rounded(values), expected)


ODD = """InputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [0]}},
  WeightTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [1]}},
  RecurrenceTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [1]}},
  BiasTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT16, values: [3660, {bias}]}},
  OutputSingleTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16}}, Direction: FORWARD,
  ActivationDescs: [{{operator: ACTIVATION_SHRINK, Bias: {shift}, Threshold: 2}}]"""


def test_sum_may_be_stored_before_and_after_the_activation(tmp_path: Path) -> None:
    """FLOAT16 truncates 3660 + 1687 to 5344, and 5344 - 1 to 5340."""
    odd = single(tmp_path, "RNN", ODD.format(bias=1687, shift=1))
    for right in (5340, 5344):
        assert accepts(odd, "OutputSingleTensor", [right]), right
    for wrong in (5332, 5356):
        assert not accepts(odd, "OutputSingleTensor", [wrong]), wrong
    even = single(tmp_path, "RNN", ODD.format(bias=1684, shift=4))
    assert accepts(even, "OutputSingleTensor", [5340])
    assert not accepts(even, "OutputSingleTensor", [5336])


ONE_NODE = """
  InputTensor: {Sizes: [1, 2, 8, 1], DataType: FLOAT16,
                fill: {uniform: {low: 0, high: 1, seed: 98}}},
  WeightTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT16, values: [-4.5, 2.5, 5.5]},
  RecurrenceTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT16, values: [-3, 2, 4]},
  BiasTensor: {Sizes: [1, 1, 1, 6], DataType: FLOAT16,
               fill: {uniform: {low: 0, high: 1, seed: 98}}},
  OutputSequenceTensor: {Sizes: [2, 1, 8, 1], DataType: FLOAT16},
  ActivationDescs: [{operator: ACTIVATION_SOFTSIGN}, {operator: ACTIVATION_TANH}],
  Direction: FORWARD, LinearBeforeReset: false"""


def test_gru_of_one_node_may_add_the_bias_before_storing(tmp_path: Path) -> None:
    """Measured on DirectML 1.8.0."""
    case = single(tmp_path, "GRU", ONE_NODE)
    measured = [
        *(1.7158203125, 1.6845703125, 1.630859375, 1.6318359375),
        *(1.4482421875, 1.4755859375, 1.6845703125, 0.447265625),
        *(0.416259765625, 0.399169921875, 0.50830078125, 0.5126953125),
        *(0.6171875, 0.63818359375, 0.39794921875, 1.431640625),
    ]
    assert accepts(case, "OutputSequenceTensor", measured)
    for wrong in (0.449, 0.446):
        other = [*measured]
        other[7] = wrong
        assert not accepts(case, "OutputSequenceTensor", other), wrong


SEVERAL_INPUTS = """
  InputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT16,
                values: [-0.23059082, -0.90136719, -0.94873047]},
  WeightTensor: {Sizes: [1, 1, 3, 3], DataType: FLOAT16,
                 values: [3.08984375, 0.4206543, 1.50195312, 12.8125, 3.66992188, 6.1171875,
                          5.73828125, 4.60546875, 7.1875]},
  RecurrenceTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT16,
                     values: [3.2109375, 12.625, 6.1484375]},
  BiasTensor: {Sizes: [1, 1, 1, 6], DataType: FLOAT16,
               values: [1.09570312, 7.8671875, 4.1796875, 12.3359375, 9.65625, 1.41796875]},
  OutputSequenceTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT16},
  ActivationDescs: [{operator: ACTIVATION_SHRINK, Bias: -0.5, Threshold: 3},
                    {operator: ACTIVATION_SIGMOID}],
  Direction: FORWARD, LinearBeforeReset: true"""


def test_gru_of_several_inputs_may_add_the_bias_before_storing(tmp_path: Path) -> None:
    """DirectML 1.8.2 gives -6.0234; the equations give -6.0687."""
    case = single(tmp_path, "GRU", SEVERAL_INPUTS)
    assert accepts(case, "OutputSequenceTensor", [-6.0234375])
    assert accepts(case, "OutputSequenceTensor", [-6.0703125])
    assert not accepts(case, "OutputSequenceTensor", [-6.0])


DOUBLING = """
  InputTensor: {Sizes: [1, 9, 7, 3], DataType: FLOAT16,
                fill: {uniform: {low: 0, high: 9, seed: 94589775493599}}},
  WeightTensor: {Sizes: [1, 2, 9, 3], DataType: FLOAT16,
                 fill: {uniform: {low: -1, high: 1, seed: 235568832778289}}},
  RecurrenceTensor: {Sizes: [1, 2, 9, 3], DataType: FLOAT16,
                     fill: {uniform: {low: -1, high: 1, seed: 255204737154922}}},
  SequenceLengthsTensor: {Sizes: [1, 1, 1, 7], DataType: UINT32,
                          fill: {integers: {low: 1, high: 9, seed: 167658744364057}}},
  OutputSingleTensor: {Sizes: [1, 2, 7, 3], DataType: FLOAT16},
  ActivationDescs: [{operator: ACTIVATION_TANH}, {operator: ACTIVATION_ELU, Alpha: 1},
                    {operator: ACTIVATION_LINEAR, Alpha: 0, Beta: 2},
                    {operator: ACTIVATION_SIGMOID}],
  Direction: BIDIRECTIONAL, LinearBeforeReset: false"""


def test_result_may_be_half_of_the_nearest_simulated_one(tmp_path: Path) -> None:
    """DirectML 1.8.0 gives 0.01165. A simulated kernel gives 0.02305, with an error of 0.01174."""
    case = single(tmp_path, "GRU", DOUBLING)
    outputs = evaluate(case)["OutputSingleTensor"]
    for value, right in ((0.01165, True), (0.0105, False)):
        outputs[0, 0, 3, 0] = value
        assert accepts(case, "OutputSingleTensor", outputs) is right, value


def test_an_error_may_change_the_slope_that_carries_it() -> None:
    """The slope of RELU is 0.5 with an error of 0.5 from -1 to 1, and exactly 1 from 4 to 6."""
    exact = Spread.none((2,))
    sums = Quantity(
        np.array([0.0, 5.0]), ErrorScale(np.zeros(2)), (exact.widened(np.ones(2)), exact)
    )
    (relu,) = Activation.each([RELU])
    spreads = sums.activated(relu, np.dtype(np.float32)).spreads
    assert spreads is not None
    np.testing.assert_allclose(spreads[0].limit, [np.hypot(0.5, 0.5), 1.0], rtol=1e-6)


ONE_NODE_BOTH_WAYS = """
  InputTensor: {Sizes: [1, 5, 17, 1], DataType: FLOAT16,
                fill: {uniform: {low: 0, high: 1, seed: 2835135368}}},
  WeightTensor: {Sizes: [1, 2, 3, 1], DataType: FLOAT16, Strides: [1, 1, 2, 6],
                 fill: {normal: {seed: 4098935304}}},
  RecurrenceTensor: {Sizes: [1, 2, 3, 1], DataType: FLOAT16, fill: {normal: {seed: 1085834934}}},
  BiasTensor: {Sizes: [1, 1, 2, 6], DataType: FLOAT16,
               fill: {uniform: {low: -1, high: 1, seed: 3850969796}}},
  HiddenInitTensor: {Sizes: [1, 2, 17, 1], DataType: FLOAT16,
                     fill: {uniform: {low: 0, high: 1, seed: 3665895221}}},
  OutputSequenceTensor: {Sizes: [5, 2, 17, 1], DataType: FLOAT16},
  ActivationDescs: [{operator: ACTIVATION_IDENTITY}, {operator: ACTIVATION_IDENTITY},
                    {operator: ACTIVATION_IDENTITY},
                    {operator: ACTIVATION_THRESHOLDED_RELU, Alpha: 3}],
  Direction: BIDIRECTIONAL, LinearBeforeReset: true"""


def test_gru_of_one_node_may_add_the_bias_of_h_first(tmp_path: Path) -> None:
    """DirectML 1.8.0 gives -23.92; the equations give -24.83, and other kernels -23.875."""
    case = single(tmp_path, "GRU", ONE_NODE_BOTH_WAYS)
    outputs = evaluate(case)["OutputSequenceTensor"]
    for value, right in ((-23.921875, True), (-23.875, True), (-24.0625, False)):
        outputs[1, 1, 13, 0] = value
        assert accepts(case, "OutputSequenceTensor", outputs) is right, value
