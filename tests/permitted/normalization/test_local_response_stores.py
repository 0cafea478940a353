"""LOCAL_RESPONSE_NORMALIZATION_GRAD of FLOAT16 may store the base of its power in FLOAT16.

DirectML was measured to truncate it or to round it to nearest.

The tested code is in `dmlconf/permitted/normalization/local_response.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.normalization.local_response import (
    local_response_normalization_grad_error_scale,
)
from dmlconf.permitted.numbers.half import to_nearest
from dmlconf.precision.accumulation import float16_ulps, roundings
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.normalization.local_response import local_response_normalization_grad
from dmlconf.reference.numbers.half import Store
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.graphs.accepted import accepts, single
from tests.truncation import toward_zero

SIZES = (2, 16, 4, 4)
ALPHA, BETA, BIAS = 0.45, 0.75, 1.0
TERMS = 8 + 2
"""The operator's rule counts 8 terms, and 2 for each element of a window."""


def arguments(seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {
        "InputTensor": generator.uniform(0.25, 1, SIZES).astype(np.float16),
        "InputGradientTensor": generator.uniform(1, 2, SIZES).astype(np.float16),
        "CrossChannel": True,
        "LocalSize": 1,
        "Alpha": ALPHA,
        "Beta": BETA,
        "Bias": BIAS,
    }


def kernel(given: dict[str, Any], store: Store) -> Array:
    """Return gradients for windows of one element; `store` rounds the squares and the base."""
    x, gradient = (
        given[name].astype(np.float64) for name in ("InputTensor", "InputGradientTensor")
    )
    alpha = float(np.float32(ALPHA))
    base = store(BIAS + alpha * store(x * x))
    return toward_zero(gradient * base**-BETA * (1 - 2 * alpha * BETA * x * x / base))


def fractions_of_limits(actual: Array, given: dict[str, Any]) -> Array:
    """Return the errors, divided by their limits."""
    desc = {**given, "OutputGradientTensor": TensorDesc(DataType.FLOAT16, SIZES)}
    right = local_response_normalization_grad(**desc)
    error_scale = local_response_normalization_grad_error_scale(**desc)
    assert error_scale.stored is not None
    # The limit of the rule `accumulate`.
    sums = error_scale.sums * roundings(TERMS) * 2.0**-24
    limit = 1.5 * float16_ulps(right) + error_scale.stored * 2.0**-10 + sums
    errors = [np.abs(actual - other) for other in (right, *error_scale.others)]
    fraction: Array = np.min(errors, axis=0) / limit
    return fraction


@pytest.mark.parametrize(
    "store",
    [toward_zero, to_nearest, lambda values: values],
    ids=["truncated", "nearest", "unrounded"],
)
def test_base_may_be_truncated_rounded_or_not_stored(store: Store) -> None:
    for seed in range(5):
        given = arguments(seed)
        assert fractions_of_limits(kernel(given, store), given).max() <= 1


def test_most_errors_of_4_ulp_are_refused() -> None:
    given = arguments(1)
    right = kernel(given, to_nearest)
    for sign in (-1, 1):
        wrong = right + sign * 4 * float16_ulps(right)
        assert (fractions_of_limits(wrong, given) > 1).mean() > 0.6


def test_gradient_of_a_base_near_0_may_be_left_out(tmp_path: Path) -> None:
    """The first base, 0.5006 + 0.0009 - 0.50145, is 3e-5; truncated sums make it negative."""
    desc = (
        "InputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT16, values: [0.7075, 0.03, 0.9]}, "
        "InputGradientTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT16, values: [1, 1, 1]}, "
        "OutputGradientTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT16}, "
        "CrossChannel: false, LocalSize: 3, Alpha: 3, Beta: -1, Bias: -0.50145"
    )
    case = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION_GRAD", desc)
    right = evaluate(case)["OutputGradientTensor"].ravel().tolist()
    of_first = 2 * 0.03 * 0.7075
    assert accepts(case, "OutputGradientTensor", right)
    assert accepts(case, "OutputGradientTensor", [right[0], right[1] - of_first, right[2]])
    assert not accepts(case, "OutputGradientTensor", [right[0], right[1], right[2] - of_first])


def test_sums_of_products_beyond_float16_leave_a_gradient_or_are_limited(tmp_path: Path) -> None:
    """DirectML 1.8.0 to 1.15.4 give the first gradients, whose sums of products are 76,800."""
    numbers = "Sizes: [1, 2, 1, 1], DataType: FLOAT16"
    desc = f"""InputTensor: {{{numbers}, values: [1, 1]}},
      InputGradientTensor: {{{numbers}, values: [60000, 60000]}},
      OutputGradientTensor: {{{numbers}}}, CrossChannel: true, LocalSize: 3, Alpha: 0.375,
      Beta: 1, Bias: 1"""
    case = single(tmp_path, "LOCAL_RESPONSE_NORMALIZATION_GRAD", desc)
    base, factor = 1.25, 0.25
    gradient = 60000 / base
    exact = gradient - factor * 2 * gradient / base
    limited = gradient - factor * 65504
    for right in (exact, limited, -np.inf):
        assert accepts(case, "OutputGradientTensor", [right, right]), right
    for wrong in (exact * 1.01, limited * 0.99, 0, 60000, np.nan, np.inf):
        assert not accepts(case, "OutputGradientTensor", [wrong, exact]), wrong
