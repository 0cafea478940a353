"""The sums of a convolution or a pooling may all err in one direction if their terms are equal.

The tested code is in `dmlconf/permitted/windows/convolution.py`,
`dmlconf/permitted/windows/pooling.py` and `values_repeat` of `dmlconf/permitted/numbers/terms.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.reference.evaluation import evaluate
from tests.permitted.graphs.accepted import accepts, single

CONVOLUTION = """
  InputTensor: {Sizes: [1, 256, 9, 9], DataType: FLOAT32, Strides: [81, 0, 9, 1],
                fill: {uniform: {low: 0.5, high: 1, seed: 3}}},
  FilterTensor: {Sizes: [1, 256, 1, 1], DataType: FLOAT32, fill: {FACTOR}},
  OutputTensor: {Sizes: [1, 1, 9, 9], DataType: FLOAT32}, Mode: CROSS_CORRELATION,
  Direction: FORWARD, Strides: [1, 1], Dilations: [1, 1], StartPadding: [0, 0],
  EndPadding: [0, 0], OutputPadding: [0, 0], GroupCount: 1"""

BACKWARD = """
  InputTensor: {Sizes: [1, 256, 9, 9], DataType: FLOAT32, Strides: [81, 0, 9, 1],
                fill: {uniform: {low: 0.5, high: 1, seed: 3}}},
  FilterTensor: {Sizes: [256, 6, 1, 1], DataType: FLOAT32, Strides: STRIDES, fill: {VARIED}},
  OutputTensor: {Sizes: [1, 6, 9, 9], DataType: FLOAT32}, Mode: CROSS_CORRELATION,
  Direction: BACKWARD, Strides: [1, 1], Dilations: [1, 1], StartPadding: [0, 0],
  EndPadding: [0, 0], OutputPadding: [0, 0], GroupCount: 1"""

POOLING = """
  InputTensor: {Sizes: [1, 80, 16, 16], DataType: FLOAT32, Strides: STRIDES,
                fill: {uniform: {low: 0.5, high: 1, seed: 3}}},
  OutputTensor: {Sizes: [1, 80, 1, 1], DataType: FLOAT32}, Strides: [1, 1], WindowSize: [16, 16],
  StartPadding: [0, 0], EndPadding: [0, 0], IncludePadding: false"""

VARIED = "uniform: {low: 0.5, high: 1, seed: 4}"
BACKWARD = BACKWARD.replace("VARIED", VARIED)


@pytest.mark.parametrize(
    ("operator", "desc", "equal"),
    [
        ("CONVOLUTION", CONVOLUTION.replace("FACTOR", "constant: {value: 0.7}"), True),
        ("CONVOLUTION", CONVOLUTION.replace("FACTOR", VARIED), False),
        ("CONVOLUTION", BACKWARD.replace("STRIDES", "[0, 1, 1, 1]"), True),
        ("CONVOLUTION", BACKWARD.replace("STRIDES", "[6, 1, 1, 1]"), False),
        ("AVERAGE_POOLING", POOLING.replace("STRIDES", "[80, 1, 0, 0]"), True),
        ("AVERAGE_POOLING", POOLING.replace("STRIDES", "[20480, 256, 16, 1]"), False),
    ],
)
def test_only_sums_of_equal_terms_may_all_be_too_large(
    tmp_path: Path, operator: str, desc: str, equal: bool
) -> None:
    """DirectML 1.15.4 gives such sums where strides of 0 repeat elements."""
    case = single(tmp_path, operator, desc)
    right = evaluate(case)["OutputTensor"].astype(np.float64)
    # The root mean square of all errors may be 308 / 2 roundings of equal terms.
    rounding = 2.0**-24
    assert accepts(case, "OutputTensor", right * (1 + 150 * rounding)) is equal
    assert not accepts(case, "OutputTensor", right * (1 + 160 * rounding))


def test_terms_of_float16_sums_never_count_as_repeated(tmp_path: Path) -> None:
    """FLOAT32 hardly rounds sums of products of FLOAT16 numbers."""
    desc = CONVOLUTION.replace("FACTOR", "constant: {value: 0.7}").replace("FLOAT32", "FLOAT16")
    case = single(tmp_path, "CONVOLUTION", desc)
    errors = CaseAllowances(case).of("OutputTensor").errors
    assert errors is not None
    assert not errors.terms_repeat
