"""Where a sum of GEMM may overflow, more results are right; elsewhere NaN is wrong.

The tested code is in `dmlconf/permitted/products/gemm.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import ANY_RESULT
from dmlconf.permitted.products.gemm import gemm_error_scale
from dmlconf.tensors.datatypes import DataType
from tests.permitted.graphs.accepted import accepts, single


@pytest.mark.parametrize("columns", [1, 2])
def test_overflow_of_a_sum_leaves_softmax_of_its_row_open(columns: int) -> None:
    left = np.array([[[[2e38, 2e38, -2e38]], [[1, 2, 3]]]], np.float32).reshape(1, 1, 2, 3)
    scale = gemm_error_scale(
        left,
        np.ones((1, 1, 3, columns), np.float32),
        None,
        TensorDesc(DataType.FLOAT32, (1, 1, 2, columns)),
        "NONE",
        "NONE",
        1.0,
        0.0,
        {"operator": "ACTIVATION_SOFTMAX"},
    )
    assert (scale.sums[0, 0, 0] == ANY_RESULT).all()
    assert (scale.sums[0, 0, 1] < 1000).all()


@pytest.mark.parametrize(
    ("row", "alpha", "right"),
    [("-88, 0", -1, 1 - np.exp(88)), ("3.0e+38, -2.0e+38", 1, 3e38 - 2e38)],
)
def test_nan_is_wrong_beside_a_sum_with_large_errors(
    tmp_path: Path, row: str, alpha: float, right: float
) -> None:
    """CELU with Alpha -1 gives 1 - exp(88) for -88. 3e38 and -2e38 have the error scale 5e38."""
    desc = f"""
      ATensor: {{Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [{row}, 1, 3]}},
      BTensor: {{Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [1, 1]}},
      OutputTensor: {{Sizes: [1, 1, 2, 1], DataType: FLOAT32}}, TransA: NONE, TransB: NONE,
      Alpha: 1, Beta: 0, FusedActivation: {{operator: ACTIVATION_CELU, Alpha: {alpha}}}"""
    case = single(tmp_path, "GEMM", desc)
    assert accepts(case, "OutputTensor", [right, 4])
    assert not accepts(case, "OutputTensor", [right, np.nan])


@pytest.mark.parametrize(
    ("activation", "of_nan"),
    [("", np.nan), (", FusedActivation: {operator: ACTIVATION_CELU, Alpha: 0.5}", 0)],
)
def test_a_finite_term_beside_an_infinity_may_overflow(
    tmp_path: Path, activation: str, of_nan: float
) -> None:
    """DirectML 1.10.1 gives NaN for infinity - 3.4e38 * 8, and CELU makes 0 of it."""
    desc = """
      ATensor: {Sizes: [1, 2], DataType: FLOAT32, values: [.inf, 1]},
      BTensor: {Sizes: [2, 1], DataType: FLOAT32, values: [1, 1]},
      CTensor: {Sizes: [1, 1], DataType: FLOAT32, values: [-8]},
      OutputTensor: {Sizes: [1, 1], DataType: FLOAT32},
      TransA: NONE, TransB: NONE, Alpha: 1, Beta: BETA"""
    large = single(tmp_path, "GEMM", desc.replace("BETA", "3.4e+38") + activation)
    assert accepts(large, "OutputTensor", [np.inf])
    assert accepts(large, "OutputTensor", [of_nan])
    small = single(tmp_path, "GEMM", desc.replace("BETA", "3.4e+30") + activation)
    assert not accepts(small, "OutputTensor", [of_nan])


def test_products_may_overflow_beside_an_infinite_beta(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives NaN for 2 * 3.4e38 - infinity."""
    desc = """
      ATensor: {Sizes: [1, 1], DataType: FLOAT32, values: [VALUE]},
      BTensor: {Sizes: [1, 1], DataType: FLOAT32, values: [1]},
      CTensor: {Sizes: [1, 1], DataType: FLOAT32, values: [-1]},
      OutputTensor: {Sizes: [1, 1], DataType: FLOAT32},
      TransA: NONE, TransB: NONE, Alpha: 2, Beta: .inf"""
    large = single(tmp_path, "GEMM", desc.replace("VALUE", "3.4e+38"))
    assert accepts(large, "OutputTensor", [-np.inf])
    assert accepts(large, "OutputTensor", [np.nan])
    small = single(tmp_path, "GEMM", desc.replace("VALUE", "1.0"))
    assert not accepts(small, "OutputTensor", [np.nan])


REPEATED = """
  ATensor: {Sizes: [1, 1, 80, 256], DataType: FLOAT32, Strides: [80, 80, 1, 0],
            fill: {uniform: {low: 0.5, high: 1, seed: 3}}},
  BTensor: {Sizes: [1, 1, 256, 1], DataType: FLOAT32, fill: {BDATA}}, TransA: NONE, TransB: NONE,
  Alpha: 1, Beta: 0, OutputTensor: {Sizes: [1, 1, 80, 1], DataType: FLOAT32}"""


@pytest.mark.parametrize(
    ("data", "equal"),
    [("constant: {value: 0.7}", True), ("uniform: {low: 0.5, high: 1, seed: 4}", False)],
)
def test_only_sums_of_equal_products_may_all_be_too_large(
    tmp_path: Path, data: str, equal: bool
) -> None:
    """DirectML 1.8.2 and 1.15.4 add in order, as this test does."""
    case = single(tmp_path, "GEMM", REPEATED.replace("BDATA", data))
    a, b = (case.inputs()[name].reshape(-1, 256) for name in ("ATensor", "BTensor"))
    if equal:
        sums = np.zeros(80, np.float32)
        for k in range(256):
            product = a[:, k].astype(np.float64) * float(b[0, k])
            sums = (sums + product).astype(np.float32)
        assert accepts(case, "OutputTensor", sums)
    exact = a.astype(np.float64) @ b[0].astype(np.float64)
    # Different terms may be off by `roundings(256)`, which is 52, and equal ones by 256.
    steps = 150 * 2.0**-24
    assert accepts(case, "OutputTensor", exact * (1 + steps)) is equal
    assert not accepts(case, "OutputTensor", exact * (1 + 4 * steps))


def test_sum_between_two_subnormals_may_round_to_either(tmp_path: Path) -> None:
    """0.625 * 108 * 2^-24 is 67.5 * 2^-24."""
    desc = f"""
      ATensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [0.625]}},
      BTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [{108 * 2.0**-24!r}]}},
      TransA: NONE, TransB: NONE, Alpha: 1, Beta: 0,
      OutputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT16}}"""
    case = single(tmp_path, "GEMM", desc)
    for right in (67, 68):
        assert accepts(case, "OutputTensor", [right * 2.0**-24]), right
    for wrong in (66, 70):
        assert not accepts(case, "OutputTensor", [wrong * 2.0**-24]), wrong


@pytest.mark.parametrize(
    "activation", ["", ", FusedActivation: {operator: ACTIVATION_GELU}"], ids=["none", "GELU"]
)
def test_an_overflow_times_an_alpha_of_zero_is_nan_also_beside_infinities(
    tmp_path: Path, activation: str
) -> None:
    """DirectML 1.15.4 gives NaN for 0 * (2 * 3e38) and for 0 * infinity."""
    desc = f"""
      ATensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [3.0e+38, .inf, 1]}},
      BTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [2]}},
      OutputTensor: {{Sizes: [1, 1, 3, 1], DataType: FLOAT32}}, TransA: NONE, TransB: NONE,
      Alpha: 0, Beta: 0{activation}"""
    case = single(tmp_path, "GEMM", desc)
    for right in ([0, np.nan, 0], [np.nan, np.nan, 0]):
        assert accepts(case, "OutputTensor", right), right
    for wrong in ([0, 0, 0], [0, np.nan, np.nan], [1, np.nan, 0]):
        assert not accepts(case, "OutputTensor", wrong), wrong


def test_a_subnormal_product_has_few_digits_before_a_large_alpha(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives 4.768e-7, with 1e-45 for 1e-45 * 0.8; the other row is exact."""
    desc = """ATensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [1.4e-45, 1.0e-20]},
      BTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0.8008784]},
      OutputTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32}, TransA: NONE, TransB: NONE,
      Alpha: 3.4028234663852886e+38, Beta: 0"""
    case = single(tmp_path, "GEMM", desc)
    other = 2.7252479e18
    for right in (4.7683713e-7, 3.8188855e-7, 0):
        assert accepts(case, "OutputTensor", [right, other]), right
    for wrong in ([2e-6, other], [-1e-6, other], [3.8188855e-7, 2.7253e18]):
        assert not accepts(case, "OutputTensor", wrong), wrong
