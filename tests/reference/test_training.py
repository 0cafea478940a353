"""ADAM_OPTIMIZER follows the formula of its page, and treats infinities as DirectML does.

The tested code is in `dmlconf/reference/training.py` and `dmlconf/permitted/training.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.training import adam_optimizer_candidates
from dmlconf.reference.training import adam_optimizer
from dmlconf.tensors.datatypes import Array, DataType
from tests.properties import examples

ONE = TensorDesc(DataType.FLOAT32, (1,))
numbers = st.floats(-4, 4, width=32)
positive = st.floats(0.125, 4, width=32)
decays = st.sampled_from([0.0, 0.25, 0.5, 0.875])
few_examples = settings(max_examples=examples(60), deadline=None)


def desc(
    parameter: float, first: float, second: float, gradient: float, step: int, **rest: float
) -> dict[str, Any]:
    """Return the fields for tensors of one element; `rest` are the other attributes."""

    def one_element(value: float) -> Array:
        return np.array([value], np.float32)

    return {
        "InputParametersTensor": one_element(parameter),
        "InputFirstMomentTensor": one_element(first),
        "InputSecondMomentTensor": one_element(second),
        "GradientTensor": one_element(gradient),
        "TrainingStepTensor": np.array([step], np.uint32),
        "OutputParametersTensor": ONE,
        "OutputFirstMomentTensor": ONE,
        "OutputSecondMomentTensor": ONE,
        **rest,
    }


@few_examples
@given(numbers, positive, st.booleans(), decays, decays)
def test_first_step_is_as_long_as_the_learning_rate(
    parameter: float, gradient: float, downward: bool, beta1: float, beta2: float
) -> None:
    slope = -gradient if downward else gradient
    rates = {"LearningRate": 0.5, "Beta1": beta1, "Beta2": beta2, "Epsilon": 0.0}
    (actual,), _, _ = adam_optimizer(**desc(parameter, 0, 0, slope, 1, **rates))
    assert abs(actual - (parameter + (0.5 if downward else -0.5))) <= 1e-6


@few_examples
@given(numbers, numbers, positive, numbers, st.integers(1, 50), decays, decays)
@example(0.0, 0.0, 1.0, 2.0**-27, 1, 0.0, 0.0)
@example(0.0, 2.0, 2.0, 2.0**-8, 1, 0.25, 0.0)
def test_formula_of_the_page_in_float32_is_permitted(
    parameter: float,
    first: float,
    second: float,
    gradient: float,
    step: int,
    beta1: float,
    beta2: float,
) -> None:
    rates = {"LearningRate": 0.25, "Beta1": beta1, "Beta2": beta2, "Epsilon": 0.125}
    x, m, v, g, lr, b1, b2, e = np.array(
        [parameter, first, second, gradient, *rates.values()], np.float32
    )
    one, power = np.float32(1), np.float32(step)
    m = b1 * m + (one - b1) * g
    v = b2 * v + (one - b2) * g * g
    alpha = np.sqrt(one - b2**power) / (one - b1**power)
    x -= lr * alpha * m / (np.sqrt(v) + e)
    # V + (1 - Beta2) * (G * G - V) may lose what G * G and V cancel.
    lost = 2.0**-20 * max(second, gradient**2)
    least, greatest = np.sqrt(max(v - lost, 0)) + e, np.sqrt(v + lost) + e
    spread = abs(lr * alpha * m) * (1 / least - 1 / greatest)
    fields = desc(parameter, first, second, gradient, step, **rates)
    for value, widest, [(lowest, highest)] in zip(
        (x, m, v), (1e-3 + spread, 1e-3, 1e-3), adam_optimizer_candidates(**fields), strict=True
    ):
        assert lowest[0] <= value <= highest[0]
        assert highest[0] - lowest[0] <= widest


def test_square_of_a_small_gradient_may_be_lost() -> None:
    """The kernels compute V + (1 - Beta2) * (G * G - V), here 1 + (2^-54 - 1)."""
    rates = {"LearningRate": 0.25, "Beta1": 0.0, "Beta2": 0.0, "Epsilon": 0.125}
    fields = desc(0, 0, 1, 2.0**-27, 1, **rates)
    assert adam_optimizer(**fields)[2].tolist() == [2.0**-54]
    [((lowest,), (highest,))] = adam_optimizer_candidates(**fields)[2]
    assert lowest == 0  # DirectML 1.15.4 gives 0.
    assert 2.0**-54 <= highest <= 2.0**-22


def test_negative_subnormal_second_moment_may_count_as_zero() -> None:
    """DirectML 1.12.1 flushes -0.5 * 2^-149 to 0; without that, its root is NaN."""
    rates = {"LearningRate": 0.5, "Beta1": 0.5, "Beta2": 2.0**-149, "Epsilon": 0.125}
    fields = desc(1, 1, -0.5, 0, 1, **rates)
    (parameter,), _, _ = adam_optimizer(**fields)
    assert np.isnan(parameter)
    intervals, _, _ = adam_optimizer_candidates(**fields)
    step = 0.5 * 2 * 0.5 / 0.125  # LearningRate * bias correction * M / Epsilon.
    assert any(lowest[0] <= 1 - step <= highest[0] for lowest, highest in intervals)


def test_an_infinite_decay_makes_a_finite_moment_infinite() -> None:
    """Measured on DirectML 1.15.4."""
    rates = {"LearningRate": 0.25, "Beta1": np.inf, "Beta2": 0.5, "Epsilon": 0.125}
    _, moment, _ = adam_optimizer(**desc(0, 1, 1, 2, 1, **rates))
    assert moment.tolist() == [-np.inf]


def test_infinite_moment_becomes_nan_unless_decay_exceeds_1() -> None:
    """The kernels compute M + (1 - Beta1) * (G - M); DirectML 1.15.4 gives infinity for 2."""
    for decay, right in ((0.5, np.nan), (1.0, np.nan), (2.0, np.inf)):
        rates = {"LearningRate": 0.5, "Beta1": decay, "Beta2": 0.5, "Epsilon": 0.0}
        _, first, _ = adam_optimizer(**desc(1, np.inf, 1, 1, 1, **rates))
        np.testing.assert_array_equal(first, np.array([right], np.float32))
