"""Attention permits the rounding errors of its scores, and no larger errors.

The tested code is in `dmlconf/permitted/products/attention.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.permitted.graphs.accepted import accepts, single

SCORES = """
  StackedQueryKeyTensor: {Sizes: [1, 256, 1, 2, 1], DataType: FLOAT32,
    fill: {uniform: {low: 0, high: HIGH, seed: SEED}}},
  ValueTensor: {Sizes: [1, 256, 1], DataType: FLOAT32,
    fill: {integers: {low: -8, high: 8, seed: SEED}}},
  BiasTensor: {Sizes: [1, 1, 3], DataType: FLOAT32, values: [0.1, 0.3, 0]},
  OutputTensor: {Sizes: [1, 256, 1], DataType: FLOAT32},
  Scale: 1.5, MaskFilterValue: 0, QueryHeadCount: 1, KeyValueHeadCount: 1, MaskType: NONE"""


def attention(tmp_path: Path, seed: int, greatest: int) -> Case:
    desc = SCORES.replace("SEED", str(seed)).replace("HIGH", str(greatest))
    return single(tmp_path, "MULTIHEAD_ATTENTION1", desc)


def kernel(case: Case) -> Array:
    """Return the output of a kernel that computes scores in FLOAT32."""
    stacked, bias = case.inputs()["StackedQueryKeyTensor"], case.inputs()["BiasTensor"].ravel()
    value = case.inputs()["ValueTensor"].ravel().astype(np.float64)
    query, key = (stacked[0, :, 0, part, 0] + bias[part] for part in range(2))
    products = query[:, np.newaxis] * key
    scores = (products * np.float32(1.5)).astype(np.float64)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    output: Array = powers @ value / powers.sum(1)
    return output


@pytest.mark.parametrize("greatest", [16, 64, 256])
def test_scores_that_float32_rounds_at_each_step_are_accepted(
    tmp_path: Path, greatest: int
) -> None:
    for seed in range(20):
        case = attention(tmp_path, seed, greatest)
        assert accepts(case, "OutputTensor", kernel(case)), seed


def test_result_that_is_one_percent_too_large_is_refused(tmp_path: Path) -> None:
    case = attention(tmp_path, 3, 16)
    assert not accepts(case, "OutputTensor", 1.01 * kernel(case))
