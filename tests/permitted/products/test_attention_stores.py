"""Attention may round intermediate results to FLOAT16 where versions of DirectML do so.

The tested code is in `dmlconf/permitted/products/attention.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.products.attention import multihead_attention1_error_scale
from dmlconf.precision.accumulation import float16_ulps
from dmlconf.reference.products.attention import multihead_attention1
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.graphs.accepted import accepts, single
from tests.reference.functions import ATTENTION_TENSORS
from tests.truncation import toward_zero

QUERIES, KEYS, SIZE = 6, 16, 8


def arguments(seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    tensors = {
        "QueryTensor": generator.uniform(-1, 1, (1, QUERIES, SIZE)),
        "KeyTensor": generator.uniform(-1, 1, (1, KEYS, SIZE)),
        "ValueTensor": generator.uniform(1, 2, (1, KEYS, SIZE)),
    }
    return {
        **dict.fromkeys(ATTENTION_TENSORS),
        **{name: values.astype(np.float16) for name, values in tensors.items()},
        "OutputTensor": TensorDesc(DataType.FLOAT16, (1, QUERIES, SIZE)),
        "Scale": 0.5,
        "MaskFilterValue": -1000.0,
        "QueryHeadCount": 1,
        "KeyValueHeadCount": 1,
        "MaskType": "NONE",
    }


def kernel(given: dict[str, Any], older: bool) -> Array:
    """Return what DirectML 1.15.4 computes, or an older version, which rounds more often."""
    query, key, value = (
        given[name][0].astype(np.float64) for name in ("QueryTensor", "KeyTensor", "ValueTensor")
    )
    scores = given["Scale"] * query @ key.T
    scores = toward_zero(scores) if older else scores
    if given["RelativePositionBiasTensor"] is not None:
        scores = toward_zero(scores + given["RelativePositionBiasTensor"][0, 0])
    powers = np.exp(scores - scores.max(1, keepdims=True))
    total = powers.sum(1, keepdims=True)
    softmax = toward_zero(powers / (toward_zero(total) if older else total))
    return toward_zero(softmax @ value)[np.newaxis]


def fractions_of_limits(actual: Array, given: dict[str, Any]) -> Array:
    """Return the errors from the nearest right result, divided by their limits."""
    (right, *_), (scale, *_) = (
        multihead_attention1(**given),
        multihead_attention1_error_scale(**given),
    )
    assert isinstance(scale, ErrorScale)
    assert scale.stored is not None
    # The limit of the rule `accumulate` for 32 roundings of a sum.
    limit = 1.5 * float16_ulps(right) + scale.stored * 2.0**-10 + scale.sums * 2.0**-19
    errors = [np.abs(actual - other) for other in (right, *scale.others)]
    fraction: Array = np.min(errors, axis=0) / limit
    return fraction


@pytest.mark.parametrize("older", [False, True])
def test_results_with_the_roundings_of_each_version_are_accepted(older: bool) -> None:
    for seed in range(5):
        given = arguments(seed)
        assert fractions_of_limits(kernel(given, older), given).max() <= 1


def test_most_results_four_ulps_too_high_are_refused() -> None:
    given = arguments(1)
    (right,) = multihead_attention1(**given)
    assert (fractions_of_limits(right + 4 * float16_ulps(right), given) > 1).mean() > 0.9


def test_scores_may_be_rounded_before_positions_are_added() -> None:
    """DirectML 1.13.1 rounds so. A FLOAT16 ULP at 30 changes exp(30) by 1.6%."""
    for seed in range(5):
        given = arguments(seed) | {"Scale": 16.0}
        scores = 16 * given["QueryTensor"][0].astype(float) @ given["KeyTensor"][0].astype(float).T
        positions = np.random.default_rng(seed).uniform(-1, 1, scores.shape) - scores
        given["RelativePositionBiasTensor"] = positions[np.newaxis, np.newaxis].astype(np.float16)
        actual = kernel(given, older=True)
        assert fractions_of_limits(actual, given).max() <= 1
        assert (fractions_of_limits(1.02 * actual, given) > 1).any()


BIASED = """StackedQueryKeyTensor:
  {{Sizes: [1, 2, 1, 2, 1], DataType: FLOAT16, values: [0, 0, 0, 0]}},
  ValueTensor: {{Sizes: [1, 2, 1], DataType: FLOAT16, values: [{value}, 0]}},
  BiasTensor: {{Sizes: [1, 1, 3], DataType: FLOAT16, values: [0, 0, 1]}},
  OutputTensor: {{Sizes: [1, 2, 1], DataType: FLOAT16}}, Scale: 1, MaskFilterValue: 0,
  QueryHeadCount: 1, KeyValueHeadCount: 1, MaskType: NONE"""


def test_value_that_overflows_with_its_bias_may_be_infinite(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives infinity for 65504 + 1."""
    infinity = float("inf")
    overflowing = single(tmp_path, "MULTIHEAD_ATTENTION1", BIASED.format(value=65504))
    assert accepts(overflowing, "OutputTensor", [infinity, infinity])
    assert accepts(overflowing, "OutputTensor", [32752, 32752])
    assert not accepts(overflowing, "OutputTensor", [30000, 30000])
    finite = single(tmp_path, "MULTIHEAD_ATTENTION1", BIASED.format(value=65472))
    assert accepts(finite, "OutputTensor", [32736, 32736])
    assert not accepts(finite, "OutputTensor", [infinity, infinity])


def test_nan_is_wrong_in_the_channel_beside_a_large_value(tmp_path: Path) -> None:
    desc = """
      QueryTensor: {Sizes: [1, 1, 1], DataType: FLOAT32, values: [10]},
      KeyTensor: {Sizes: [1, 2, 1], DataType: FLOAT32, values: [10, 10.1]},
      ValueTensor: {Sizes: [1, 2, 2], DataType: FLOAT32, values: [3.4e+38, 1, 0, 3]},
      OutputTensor: {Sizes: [1, 1, 2], DataType: FLOAT32}, Scale: 1, MaskFilterValue: 0,
      HeadCount: 1, MaskType: NONE"""
    case = single(tmp_path, "MULTIHEAD_ATTENTION", desc)
    weight = 1 / (1 + np.e)  # Softmax of the scores 100 and 101.
    right = [weight * 3.4e38, weight + (1 - weight) * 3]
    assert accepts(case, "OutputTensor", right)
    assert not accepts(case, "OutputTensor", [right[0], np.nan])


def test_mask_is_added_in_float32_before_scores_are_stored(tmp_path: Path) -> None:
    """DirectML 1.12.1 and 1.13.1 store 100 - 3.4e-6 as 100, and 100 - 0.0023 as 99.9375."""
    tensor = "DataType: FLOAT16, values:"
    desc = f"""
      QueryTensor: {{Sizes: [1, 1, 1], {tensor} [{-19 * 2.0**-24!r}]}},
      KeyTensor: {{Sizes: [1, 4, 1], {tensor} [0, 3, 1, 2047]}},
      ValueTensor: {{Sizes: [1, 4, 1], {tensor} [0, 3, 1, 2047]}},
      MaskTensor: {{Sizes: [1, 1], DataType: INT32, values: [1]}},
      OutputTensor: {{Sizes: [1, 1, 1], DataType: FLOAT16}},
      Scale: 1, MaskFilterValue: 100, HeadCount: 1, MaskType: KEY_SEQUENCE_LENGTH"""
    case = single(tmp_path, "MULTIHEAD_ATTENTION", desc)
    weights = np.array([0, 1, 1, np.exp(99.9375 - 100)])
    assert accepts(case, "OutputTensor", [weights @ [0, 3, 1, 2047] / weights.sum()])
    assert not accepts(case, "OutputTensor", [650])
    assert not accepts(case, "OutputTensor", [670])


def test_scores_beyond_float16_may_be_equal(tmp_path: Path) -> None:
    """DirectML 1.13.1 stores both scores as 65504, so 3 of 6 equal shares of 1 are 0.49976."""
    case = single(
        tmp_path,
        "MULTIHEAD_ATTENTION",
        """
  QueryTensor: {Sizes: [1, 1, 1, 1, 1], DataType: FLOAT16, values: [1]},
  StackedKeyValueTensor: {Sizes: [1, 6, 1, 2, 1], DataType: FLOAT16,
    values: [40000, 0, 40000, 0, 40000, 0, 35000, 1, 35000, 1, 35000, 1]},
  OutputTensor: {Sizes: [1, 1, 1, 1, 1], DataType: FLOAT16},
  Scale: 2, MaskFilterValue: 0, HeadCount: 1, MaskType: NONE""",
    )
    for right in (0.0, 0.5 - 2**-12):
        assert accepts(case, "OutputTensor", [right])
    for wrong in (0.5 - 2**-11, 0.6, 1.0):
        assert not accepts(case, "OutputTensor", [wrong])
