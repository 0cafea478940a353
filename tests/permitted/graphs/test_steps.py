"""ROUND and other step functions of an inexact number may give one of several whole numbers.

The tested code is in `dmlconf/permitted/graphs/steps.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.permitted.graphs.accepted import Values, accepts, graph

INPUTS = """
  x: {Sizes: [3], DataType: TYPE, values: [2, 1, -3]}
  c: {Sizes: [3], DataType: TYPE, values: [2, 2, 2]}"""

QUOTIENT = """
  q: {operator: ELEMENT_WISE_DIVIDE, desc: {ATensor: x, BTensor: c, OutputTensor: {}}}
  node: {operator: OPERATOR, desc: {InputTensor: q, OutputTensor: {}MORE}}"""

TIES = ", RoundingMode: HALVES_TO_NEAREST_EVEN"


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize(
    ("operator", "more", "right", "wrong"),
    [
        ("FLOOR", "", [[1, 0, -2], [0, 0, -2]], [[0.9, 0, -2], [2, 0, -2], [1, 0, -1]]),
        ("ROUND", TIES, [[1, 0, -2], [1, 0, -1]], [[2, 0, -2], [1, 0.5, -2], [1, 0, -3]]),
        (
            "CEIL",
            ", ScaleBias: {Scale: -1, Bias: 0}",
            [[-1, 0, 2], [0, 0, 2]],
            [[1, 0, 2], [-0.5, 0, 2]],
        ),
    ],
)
def test_quotient_at_a_jump_becomes_either_whole_number(
    tmp_path: Path,
    data_type: str,
    operator: str,
    more: str,
    right: list[Values],
    wrong: list[Values],
) -> None:
    """The quotients may be next to 1, 0.5 and -1.5."""
    nodes = QUOTIENT.replace("OPERATOR", f"ELEMENT_WISE_{operator}").replace("MORE", more)
    case = graph(tmp_path, INPUTS.replace("TYPE", data_type), nodes)
    for values in right:
        assert accepts(case, "y", values), values
    for values in wrong:
        assert not accepts(case, "y", values), values


@pytest.mark.parametrize(
    ("operator", "more", "right", "wrong"),
    [
        ("ROUND", TIES, [[2, 4], [3, 4]], [[2.5, 4], [1, 4], [2, 3.5]]),
        ("FLOOR", "", [[2, 3]], [[3, 3], [2.5, 3]]),
    ],
)
def test_quotient_may_be_stored_in_float16_before_its_step(
    tmp_path: Path, operator: str, more: str, right: list[Values], wrong: list[Values]
) -> None:
    """FLOAT16 stores 2502 / 1000.5 = 2.50075 as 2.5, and ROUND(2.5) is 2."""
    values = "{Sizes: [2], DataType: FLOAT16, values: "
    inputs = f"\n  x: {values}[2502, 7]}}\n  c: {values}[1000.5, 2]}}"
    nodes = QUOTIENT.replace("OPERATOR", f"ELEMENT_WISE_{operator}").replace("MORE", more)
    case = graph(tmp_path, inputs, nodes)
    for numbers in right:
        assert accepts(case, "y", numbers), numbers
    for numbers in wrong:
        assert not accepts(case, "y", numbers), numbers


def test_overflow_of_one_element_permits_no_fraction_elsewhere(tmp_path: Path) -> None:
    """2 / 2 may be just below 1, and 3e38 / 0.5 overflows."""
    nodes = QUOTIENT.replace("OPERATOR", "ELEMENT_WISE_FLOOR").replace("MORE", "")
    values = "{Sizes: [2], DataType: FLOAT32, values: "
    inputs = f"\n  x: {values}[2, 3.0e+38]}}\n  c: {values}[2, 0.5]}}"
    case = graph(tmp_path, inputs, nodes)
    for number in (0, 1):
        assert accepts(case, "y", [number, float("inf")]), number
    assert not accepts(case, "y", [0.5, float("inf")])


CHAIN = """
  q: {operator: ELEMENT_WISE_DIVIDE, desc: {ATensor: x, BTensor: c, OutputTensor: {}}}
  floor: {operator: ELEMENT_WISE_FLOOR, desc: {InputTensor: q, OutputTensor: {}}}
  same: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: floor, OutputTensor: {}}}
  node: {operator: ACTIVATION_LINEAR,
         desc: {InputTensor: same, OutputTensor: {}, Alpha: 3, Beta: 0.5}}"""


def test_linear_function_of_either_whole_number_has_two_results(tmp_path: Path) -> None:
    """FLOOR(2 / 2) may be 1 or 0, and the first result 3 * 1 + 0.5 or 3 * 0 + 0.5."""
    case = graph(tmp_path, INPUTS.replace("TYPE", "FLOAT32"), CHAIN)
    for values in ([3.5, 0.5, -5.5], [0.5, 0.5, -5.5]):
        assert accepts(case, "y", values), values
    for values in ([3.4, 0.5, -5.5], [2, 0.5, -5.5], [6.5, 0.5, -5.5], [3.5, 0.6, -5.5]):
        assert not accepts(case, "y", values), values


STEP = """
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  step: {operator: STEP}
  node: {operator: CAST, desc: {InputTensor: step, OutputTensor: {DataType: FLOAT32}}}"""

ROW = "{Sizes: [1, 1, 1, 1], DataType: FLOAT32"
SIGN = "ELEMENT_WISE_SIGN, desc: {InputTensor: cosine, OutputTensor: {}}"
TO_INT32 = "CAST, desc: {InputTensor: cosine, OutputTensor: {DataType: INT32}}"
TO_UINT8 = """ELEMENT_WISE_QUANTIZE_LINEAR, desc: {InputTensor: cosine, ScaleTensor: s,
         ZeroPointTensor: z, OutputTensor: {DataType: UINT8}}"""


@pytest.mark.parametrize(
    ("step", "number", "whole"),
    [
        (SIGN, 1.5707964, [-1, 0, 1]),
        (TO_INT32, 0, [0, 1]),
        (TO_UINT8, 1.5707964, [6, 7, 8]),
    ],
)
def test_sign_cast_and_quantization_give_whole_numbers_only(
    tmp_path: Path, step: str, number: float, whole: list[int]
) -> None:
    """Cosines may be off by 0.0008, and the scale is 0.001."""
    inputs = f"""
  x: {ROW}, values: [{number}]}}
  s: {ROW}, values: [0.001]}}
  z: {{Sizes: [1, 1, 1, 1], DataType: UINT8, values: [7]}}"""
    case = graph(tmp_path, inputs, STEP.replace("STEP", step))
    for each in range(-2, 12):
        assert accepts(case, "y", [each]) == (each in whole), each
    assert not accepts(case, "y", [whole[0] + 0.5])


TRANSPOSED = """
  q: {operator: ELEMENT_WISE_DIVIDE, desc: {ATensor: x, BTensor: c, OutputTensor: {}}}
  floor: {operator: ELEMENT_WISE_FLOOR, desc: {InputTensor: q, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_ADD1, desc: {ATensor: floor,
         BTensor: {from: floor, Strides: STRIDES}, OutputTensor: {Sizes: [2, 2]}}}"""


@pytest.mark.parametrize(("strides", "odd"), [("[2, 1]", False), ("[1, 2]", True)])
def test_two_elements_of_a_sum_step_independently(tmp_path: Path, strides: str, odd: bool) -> None:
    """Strides [1, 2] add the transpose, and [2, 1] add each element to itself."""
    tensor = "{Sizes: [2, 2], DataType: FLOAT32, values: [2, 2, 2, 2]}"
    case = graph(
        tmp_path, f"\n  x: {tensor}\n  c: {tensor}", TRANSPOSED.replace("STRIDES", strides)
    )
    assert accepts(case, "y", [2, 0, 0, 2])
    assert accepts(case, "y", [2, 1, 1, 2]) == odd


WIDE = """
  large: {operator: ACTIVATION_LINEAR, desc: {InputTensor: x, OutputTensor: {}, Alpha: 3, Beta: 1}}
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: large, OutputTensor: {}}}
  scaled: {operator: ACTIVATION_LINEAR,
           desc: {InputTensor: cosine, OutputTensor: {}, Alpha: SCALE, Beta: 0}}
  node: {operator: ELEMENT_WISE_CEIL, desc: {InputTensor: scaled, OutputTensor: {}}}"""


@pytest.mark.parametrize(("scale", "between"), [(2, False), (100, True)])
def test_fractions_are_right_only_among_many_whole_numbers(
    tmp_path: Path, scale: int, between: bool
) -> None:
    """COS(9e8) may be any number from -1 to 1, and CEIL of 100 times that any of some 200."""
    inputs = "\n  x: {Sizes: [1], DataType: FLOAT32, values: [3.0e+8]}"
    case = graph(tmp_path, inputs, WIDE.replace("SCALE", str(scale)))
    for value in (1 - scale, 0, 1, scale):
        assert accepts(case, "y", [value]), value
    assert accepts(case, "y", [0.5]) == between
