"""Outputs of zeros, and copies of an input, fail if only a wide tolerance permits them.

The tested code is in `dmlconf/judging/mistrust.py` and `dmlconf/judging/judge.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.judging.judge import judge
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict

SUMS = """
operator: GEMM
cases:
  - name: small
    desc:
      ATensor: {{Sizes: [1, 1, 8, {length}], DataType: FLOAT16, values: {values}}}
      BTensor: {{Sizes: [1, 1, {length}, 1], DataType: FLOAT16, fill: {{constant: {{value: 1}}}}}}
      OutputTensor: {{Sizes: [1, 1, 8, 1], DataType: FLOAT16}}
      TransA: NONE
      TransB: NONE
      Alpha: 1
      Beta: 0
"""


def only_case(folder: Path, text: str) -> Case:
    file = folder / "case.yaml"
    file.write_text(text, encoding="utf-8")
    [planned] = load_suite([file]).plan()
    return build(planned)


def sums(folder: Path, row: Sequence[float]) -> Case:
    return only_case(folder, SUMS.format(length=len(row), values=[*row] * 8))


def judge_outputs(case: Case, output: Array) -> Verdict:
    right = run_case(case)
    return judge(case, Outputs({"OutputTensor": output}), lambda _: right)


SINES = """
operator: ELEMENT_WISE_SIN
cases:
  - name: small
    desc:
      InputTensor: {Sizes: [16], DataType: FLOAT32, fill: {uniform: {low: 0.0003, high: 0.0007}}}
      OutputTensor: {Sizes: [16], DataType: FLOAT32}
"""


def test_zeros_that_only_a_wide_tolerance_permits_fail(tmp_path: Path) -> None:
    """The rule permits an error of 0.0008 for each of these sines."""
    case = only_case(tmp_path, SINES)
    verdict = judge_outputs(case, np.zeros(16, np.float32))
    assert verdict.figures["OutputTensor"].differing == 0
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.ALL_ZEROS


@pytest.mark.parametrize("value", [1e-4, 3.9e-4])
def test_zeros_of_a_function_that_adds_no_1_fail(value: float, tmp_path: Path) -> None:
    text = SINES.replace("uniform: {low: 0.0003, high: 0.0007}", f"constant: {{value: {value}}}")
    verdict = judge_outputs(only_case(tmp_path, text), np.zeros(16, np.float32))
    assert verdict.status is Status.FAILED


SOFTPLUS = """
operator: ACTIVATION_PARAMETRIC_SOFTPLUS
cases:
  - name: small
    desc:
      InputTensor: {Sizes: [16], DataType: FLOAT32, fill: {uniform: {low: -16, high: -15}}}
      OutputTensor: {Sizes: [16], DataType: FLOAT32}
      Alpha: 1
      Beta: 1
"""


def test_zeros_of_a_logarithm_beside_1_fail(tmp_path: Path) -> None:
    """The rule permits an error of 3e-7, which exceeds some of these results."""
    case = only_case(tmp_path, SOFTPLUS)
    verdict = judge_outputs(case, np.zeros(16, np.float32))
    assert verdict.figures["OutputTensor"].differing == 0
    assert verdict.status is Status.FAILED


def test_fewer_than_eight_zeros_pass(tmp_path: Path) -> None:
    case = only_case(tmp_path, SINES.replace("[16]", "[7]"))
    assert judge_outputs(case, np.zeros(7, np.float32)).status is Status.PASSED


def test_zeros_pass_if_an_exact_result_is_zero(tmp_path: Path) -> None:
    case = only_case(
        tmp_path,
        """
operator: TILE
cases:
  - name: zeros
    desc:
      InputTensor: {Sizes: [8], DataType: FLOAT32, fill: {constant: {value: 0}}}
      OutputTensor: {Sizes: [16], DataType: FLOAT32}
      Repeats: [2]
""",
    )
    assert judge_outputs(case, np.zeros(16, np.float32)).status is Status.PASSED


def test_zeros_pass_if_a_sum_may_cancel(tmp_path: Path) -> None:
    """The sum is 0.07; the sizes of its terms add up to 100,500."""
    case = sums(tmp_path, [100.5] * 500 + [-100.5] * 500 + [0.07])
    assert judge_outputs(case, np.zeros((1, 1, 8, 1), np.float16)).status is Status.PASSED


@pytest.mark.parametrize(("value", "status"), [(8e-8, Status.PASSED), (2e-7, Status.FAILED)])
def test_zeros_pass_if_a_function_may_lose_its_input(
    value: float, status: Status, tmp_path: Path
) -> None:
    """DirectML 1.8.0 and 1.13.1 give 0 for -8e-8, and other numbers for -1e-7."""
    case = only_case(
        tmp_path,
        f"""
operator: ACTIVATION_TANH
cases:
  - name: near-zero
    desc:
      InputTensor: {{Sizes: [16], DataType: FLOAT32, fill: {{constant: {{value: {value}}}}}}}
      OutputTensor: {{Sizes: [16], DataType: FLOAT32}}
""",
    )
    assert judge_outputs(case, np.zeros(16, np.float32)).status is status


def test_a_copy_that_only_a_wide_tolerance_permits_fails(tmp_path: Path) -> None:
    """tanh(0.003) is 39 ULP below 0.003; a copy may be off by 16 ULP."""
    case = only_case(
        tmp_path,
        """
operator: ACTIVATION_TANH
cases:
  - name: near-zero
    desc:
      InputTensor: {Sizes: [16], DataType: FLOAT32, fill: {uniform: {low: 0.003, high: 0.0032}}}
      OutputTensor: {Sizes: [16], DataType: FLOAT32}
""",
    )
    copied = judge_outputs(case, case.inputs()["InputTensor"])
    assert copied.figures["OutputTensor"].differing == 0
    assert copied.status is Status.FAILED
    assert copied.reason is not None
    assert copied.reason.kind is ReasonKind.INPUT_COPIED
    right = run_case(case)
    assert isinstance(right, Outputs)
    assert judge_outputs(case, right.arrays["OutputTensor"]).status is Status.PASSED


def test_a_copy_is_unchecked_if_every_result_is_permitted(tmp_path: Path) -> None:
    """The squares are 0 in FLOAT16, so is the base, and any power of it is right."""
    case = only_case(
        tmp_path,
        """
operator: LOCAL_RESPONSE_NORMALIZATION_GRAD
cases:
  - name: squares-that-underflow
    desc:
      InputTensor: {Sizes: [1, 4, 3, 1], DataType: FLOAT16, fill: {constant: {value: 7.6e-6}}}
      InputGradientTensor:
        {Sizes: [1, 4, 3, 1], DataType: FLOAT16, fill: {integers: {low: 2, high: 8}}}
      OutputGradientTensor: {Sizes: [1, 4, 3, 1], DataType: FLOAT16}
      CrossChannel: true
      LocalSize: 1
      Alpha: 1
      Beta: 2
      Bias: 0
""",
    )
    right = run_case(case)
    gradient = case.inputs()["InputGradientTensor"]
    verdict = judge(case, Outputs({"OutputGradientTensor": gradient}), lambda _: right)
    assert verdict.status is Status.UNCHECKED


def test_zeros_are_unchecked_if_every_result_is_permitted(tmp_path: Path) -> None:
    """The squares are 0 in FLOAT16, and DirectML gives 0 for a gradient with the base 0."""
    case = only_case(
        tmp_path,
        """
operator: LOCAL_RESPONSE_NORMALIZATION_GRAD
cases:
  - name: squares-that-underflow
    desc:
      InputTensor: {Sizes: [1, 1, 4, 4], DataType: FLOAT16, fill: {constant: {value: 7.6e-6}}}
      InputGradientTensor: {Sizes: [1, 1, 4, 4], DataType: FLOAT16, fill: {constant: {value: 1}}}
      OutputGradientTensor: {Sizes: [1, 1, 4, 4], DataType: FLOAT16}
      CrossChannel: false
      LocalSize: 3
      Alpha: 1
      Beta: 1
      Bias: 0
""",
    )
    right = run_case(case)
    zeros = np.zeros((1, 1, 4, 4), np.float16)
    verdict = judge(case, Outputs({"OutputGradientTensor": zeros}), lambda _: right)
    assert verdict.status is Status.UNCHECKED


def test_zeros_pass_if_the_formula_loses_small_results(tmp_path: Path) -> None:
    """A kernel may compute the tangent from exp(1e-30), which is 1 in FLOAT32."""
    case = only_case(
        tmp_path,
        """
operator: ACTIVATION_TANH
cases:
  - name: tiny
    desc:
      InputTensor: {Sizes: [16], DataType: FLOAT32, fill: {constant: {value: 1.0e-30}}}
      OutputTensor: {Sizes: [16], DataType: FLOAT32}
""",
    )
    zeros = np.zeros(16, np.float32)
    assert judge_outputs(case, zeros).status is Status.PASSED


CASTS = """
operator: CAST
cases:
  - name: out-of-range
    desc:
      InputTensor: {{Sizes: [9], DataType: INT32, fill: {{constant: {{value: {value}}}}}}}
      OutputTensor: {{Sizes: [9], DataType: INT8}}
"""


def test_zeros_pass_only_if_0_is_a_candidate(tmp_path: Path) -> None:
    """256 may become 127 or wrap around to 0, and 257 may become 127 or 1."""
    for value, right in ((256, True), (257, False), (7, False)):
        case = only_case(tmp_path, CASTS.format(value=value))
        verdict = judge_outputs(case, np.zeros(9, np.int8))
        assert (verdict.status is Status.PASSED) == right


PRODUCTS = """
operator: REDUCE
cases:
  - name: products
    desc:
      Function: MULTIPLY
      InputTensor: {Sizes: [13, 2, 9], DataType: FLOAT16, fill: {uniform: {low: 0.1, high: 0.2}}}
      OutputTensor: {Sizes: [13, 1, 1], DataType: FLOAT16}
      Axes: [1, 2]
"""


def test_zeros_pass_if_a_product_underflows(tmp_path: Path) -> None:
    """Each product is at most 0.2**18, which is 0 in FLOAT16."""
    case = only_case(tmp_path, PRODUCTS)
    assert judge_outputs(case, np.zeros((13, 1, 1), np.float16)).status is Status.PASSED


NORMS = """
operator: LP_NORMALIZATION
cases:
  - name: squares-overflow
    desc:
      InputTensor: {Sizes: [4, 8], DataType: FLOAT32, fill: {uniform: {low: 1e20, high: 1e21}}}
      OutputTensor: {Sizes: [4, 8], DataType: FLOAT32}
      Axis: 1
      Epsilon: 0.25
      P: 2
"""


def test_zeros_pass_if_squares_overflow(tmp_path: Path) -> None:
    """A number divided by an infinite norm is 0."""
    case = only_case(tmp_path, NORMS)
    assert judge_outputs(case, np.zeros((4, 8), np.float32)).status is Status.PASSED


def test_a_copy_passes_as_the_maximum_of_single_elements(tmp_path: Path) -> None:
    case = only_case(
        tmp_path,
        """
operator: REDUCE
cases:
  - name: single
    desc:
      Function: MAX
      InputTensor: {Sizes: [5, 1, 3], DataType: FLOAT32, fill: {uniform: {low: -2, high: 3}}}
      OutputTensor: {Sizes: [5, 1, 3], DataType: FLOAT32}
      Axes: [1]
""",
    )
    assert judge_outputs(case, case.inputs()["InputTensor"]).status is Status.PASSED


def test_a_copy_of_the_bias_passes_if_squares_overflow(
    tmp_path: Path,
) -> None:
    """A number divided by an infinite deviation is 0, to which the bias is added."""
    case = only_case(
        tmp_path,
        """
operator: MEAN_VARIANCE_NORMALIZATION1
cases:
  - name: squares-overflow
    desc:
      InputTensor: {Sizes: [4, 8], DataType: FLOAT32, fill: {uniform: {low: -1e21, high: 1e21}}}
      ScaleTensor: {Sizes: [4, 8], DataType: FLOAT32, fill: {uniform: {low: 1, high: 9}}}
      BiasTensor: {Sizes: [4, 8], DataType: FLOAT32, fill: {uniform: {low: -1, high: 1}}}
      OutputTensor: {Sizes: [4, 8], DataType: FLOAT32}
      Axes: [1]
      NormalizeVariance: true
      Epsilon: 0.25
""",
    )
    assert judge_outputs(case, case.inputs()["BiasTensor"]).status is Status.PASSED


def test_a_copy_passes_if_coordinates_may_be_rounded(tmp_path: Path) -> None:
    """The coordinate of element i is just below i, and FLOAT32 may round it to i."""
    case = only_case(
        tmp_path,
        """
operator: RESAMPLE
cases:
  - name: by-a-little
    desc:
      InputTensor: {Sizes: [8], DataType: INT8, values: [-57, 34, -47, 53, 14, -115, -16, -106]}
      OutputTensor: {Sizes: [8], DataType: INT8}
      InterpolationMode: NEAREST_NEIGHBOR
      Scales: [1.0000001192092896]
""",
    )
    assert judge_outputs(case, case.inputs()["InputTensor"]).status is Status.PASSED


def test_zeros_pass_if_subnormal_results_may_be_flushed(tmp_path: Path) -> None:
    case = only_case(
        tmp_path,
        """
operator: ELEMENT_WISE_MULTIPLY
cases:
  - name: subnormal
    desc:
      ATensor: {Sizes: [16], DataType: FLOAT32, fill: {constant: {value: 1.0e-20}}}
      BTensor: {Sizes: [16], DataType: FLOAT32, fill: {constant: {value: 1.0e-20}}}
      OutputTensor: {Sizes: [16], DataType: FLOAT32}
""",
    )
    assert judge_outputs(case, np.zeros(16, np.float32)).status is Status.PASSED


def test_zeros_pass_if_subnormal_operands_may_be_flushed(tmp_path: Path) -> None:
    """The root of 1e-40 is 1e-20, a normal number."""
    case = only_case(
        tmp_path,
        """
operator: ELEMENT_WISE_SQRT
cases:
  - name: subnormal
    desc:
      InputTensor: {Sizes: [16], DataType: FLOAT32, fill: {constant: {value: 1.0e-40}}}
      OutputTensor: {Sizes: [16], DataType: FLOAT32}
""",
    )
    assert judge_outputs(case, np.zeros(16, np.float32)).status is Status.PASSED


def test_right_zeros_pass_for_scales_with_more_dimensions(
    tmp_path: Path,
) -> None:
    case = only_case(
        tmp_path,
        """
operator: QUANTIZED_LINEAR_MATRIX_MULTIPLY
cases:
  - name: zeros
    desc:
      ATensor: {Sizes: [3, 3], DataType: UINT8, fill: {constant: {value: 0}}}
      AScaleTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [2, 3, 4]}
      BTensor: {Sizes: [3, 3], DataType: UINT8, fill: {constant: {value: 1}}}
      BScaleTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}
      OutputScaleTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1, 1, 1]}
      OutputTensor: {Sizes: [3, 3], DataType: UINT8}
""",
    )
    assert judge_outputs(case, np.zeros((3, 3), np.uint8)).status is Status.PASSED
