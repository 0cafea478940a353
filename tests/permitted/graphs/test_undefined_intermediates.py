"""Elements computed from open (undefined) elements of earlier nodes are open, and no others.

The tested code is in `dmlconf/permitted/graphs/`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.verdicts.verdict import Status
from tests.graphs.suites import graph_case
from tests.permitted.graphs.accepted import passes, status_of

COORDINATES = """
inputs:
  x: {Sizes: [4], DataType: UINT8, values: [0, 7, 0, 9]}
nodes:
  coordinates:
    operator: NONZERO_COORDINATES
    desc: {InputTensor: x, OutputCountTensor: {Sizes: [1], DataType: UINT32},
           OutputCoordinatesTensor: {Sizes: [4, 1], DataType: UINT32}}
  bits:
    operator: ELEMENT_WISE_BIT_COUNT
    desc: {InputTensor: coordinates.OutputCoordinatesTensor,
           OutputTensor: {Sizes: [4, 1], DataType: UINT8}}
outputs: {y: bits}
"""

ORDER = """
inputs:
  x: {Sizes: [4], DataType: FLOAT32, values: VALUES}
nodes:
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  index:
    operator: OPERATOR
outputs: {y: index.OUTPUT}
"""

GREATEST = ORDER.replace(
    "OPERATOR",
    """ARGMAX
    desc: {InputTensor: cosine, OutputTensor: {Sizes: [1], DataType: UINT32}, Axes: [0],
           AxisDirection: INCREASING}""",
).replace("OUTPUT", "OutputTensor")

LEAST_TWO = ORDER.replace(
    "OPERATOR",
    """TOP_K1
    desc: {InputTensor: cosine, OutputValueTensor: {Sizes: [2]},
           OutputIndexTensor: {Sizes: [2], DataType: UINT32}, Axis: 0, K: 2,
           AxisDirection: INCREASING}""",
).replace("OUTPUT", "OutputIndexTensor")

STORE = """
inputs:
  x: {Sizes: [1, 1, 2, 1], DataType: FLOAT16, values: [60000, 30000]}
  w: {Sizes: [1, 1, 1, 1], DataType: FLOAT16, values: [2]}
nodes:
  product:
    operator: GEMM
    desc: {ATensor: x, BTensor: w, OutputTensor: {Sizes: [1, 1, 2, 1]}, TransA: NONE,
           TransB: NONE, Alpha: 1, Beta: 0}
  half:
    operator: ACTIVATION_LINEAR
    desc: {InputTensor: product, OutputTensor: {}, Alpha: 0.5, Beta: 0}
outputs: {y: half}
"""


def test_elements_computed_from_undefined_coordinates_are_open_and_no_others(
    tmp_path: Path,
) -> None:
    case = graph_case(tmp_path, COORDINATES)
    assert passes(case, "y", [1, 2, 20, 32])
    assert not passes(case, "y", [1, 3, 20, 32])


@pytest.mark.parametrize(("index", "right"), [(0, True), (1, True), (2, True), (3, False)])
def test_an_index_is_right_if_its_value_may_be_the_greatest(
    tmp_path: Path, index: int, right: bool
) -> None:
    # The errors of the first three cosines are at least as large as their differences.
    values = "[0.00001, 0.00002, 0.00003, 3]"
    assert passes(graph_case(tmp_path, GREATEST.replace("VALUES", values)), "y", [index]) is right


@pytest.mark.parametrize(
    ("indices", "right"),
    [([3, 0], True), ([3, 2], True), ([2, 0], False), ([0, 3], False), ([3, 1], True)],
)
def test_each_rank_accepts_only_indices_of_values_that_may_have_it(
    tmp_path: Path, indices: list[float], right: bool
) -> None:
    values = "[0.00001, 0.00002, 0.00003, 3]"
    assert passes(graph_case(tmp_path, LEAST_TWO.replace("VALUES", values)), "y", indices) is right


def test_indices_of_exact_values_are_exact(tmp_path: Path) -> None:
    case = graph_case(tmp_path, GREATEST.replace("VALUES", "[3, 0, 2, 1]"))
    assert passes(case, "y", [1])
    assert not any(passes(case, "y", [index]) for index in (0, 2, 3))


def test_an_overflow_may_give_infinity_or_the_largest_number(tmp_path: Path) -> None:
    case = graph_case(tmp_path, STORE)
    assert passes(case, "y", [np.inf, 30000])
    assert passes(case, "y", [32752, 30000])
    assert not passes(case, "y", [16000, 30000])
    assert not passes(case, "y", [np.nan, 30000])


def test_hardmax_gives_one_to_any_element_that_may_be_the_first(tmp_path: Path) -> None:
    graph = ORDER.replace(
        "OPERATOR",
        """ACTIVATION_HARDMAX1
    desc: {InputTensor: cosine, OutputTensor: {}, Axes: [0]}""",
    ).replace("OUTPUT", "OutputTensor")
    case = graph_case(tmp_path, graph.replace("VALUES", "[0.00001, 0.00002, 0.00003, 3]"))
    assert passes(case, "y", [1, 0, 0, 0])
    assert passes(case, "y", [0, 0, 1, 0])
    assert not passes(case, "y", [0, 0, 0, 1])


def test_rows_after_a_count_that_is_undefined_are_open(tmp_path: Path) -> None:
    """The last coordinates are undefined, and so is the number of them that are less than 2."""
    text = """
inputs:
  x: {Sizes: [4], DataType: UINT8, values: [0, 7, 0, 9]}
  two: {Sizes: [4, 1], DataType: UINT32, values: [2, 2, 2, 2]}
nodes:
  coordinates:
    operator: NONZERO_COORDINATES
    desc: {InputTensor: x, OutputCountTensor: {Sizes: [1], DataType: UINT32},
           OutputCoordinatesTensor: {Sizes: [4, 1], DataType: UINT32}}
  small:
    operator: ELEMENT_WISE_LOGICAL_LESS_THAN
    desc: {ATensor: coordinates.OutputCoordinatesTensor, BTensor: two,
           OutputTensor: {Sizes: [4, 1], DataType: UINT8}}
  places:
    operator: NONZERO_COORDINATES
    desc: {InputTensor: small, OutputCountTensor: {Sizes: [1], DataType: UINT32},
           OutputCoordinatesTensor: {Sizes: [4, 2], DataType: UINT32}}
outputs: {y: places.OutputCoordinatesTensor}
"""
    case = graph_case(tmp_path, text)
    assert passes(case, "y", [0, 0, 9, 9, 9, 9, 9, 9])
    assert not passes(case, "y", [1, 0, 9, 9, 9, 9, 9, 9])


def graph_of_coordinates(nodes: str) -> str:
    """Return a graph whose nodes read 32 coordinates of x, of which the last 30 are undefined."""
    values = [0, 7, *[0] * 29, 9]
    return f"""
inputs:
  x: {{Sizes: [32], DataType: UINT8, values: {values}}}
  divisor: {{Sizes: [32, 1], DataType: UINT32, values: {[3] * 32}}}
nodes:
  coordinates:
    operator: NONZERO_COORDINATES
    desc: {{InputTensor: x, OutputCountTensor: {{Sizes: [1], DataType: UINT32}},
           OutputCoordinatesTensor: {{Sizes: [32, 1], DataType: UINT32}}}}
{nodes}
"""


def test_remainders_of_undefined_coordinates_are_open(tmp_path: Path) -> None:
    """2^32 - 1 is a multiple of 3, so both ends of the range of UINT32 have the remainder 0."""
    case = graph_case(
        tmp_path,
        graph_of_coordinates(
            """  rest:
    operator: ELEMENT_WISE_MODULUS_TRUNCATE
    desc: {ATensor: coordinates.OutputCoordinatesTensor, BTensor: divisor, OutputTensor: {}}
outputs: {y: rest}"""
        ),
    )
    assert passes(case, "y", [1, 1, *[2] * 30])
    assert not passes(case, "y", [1, 0, *[2] * 30])


def test_the_least_of_undefined_elements_is_undefined(tmp_path: Path) -> None:
    """The flags of the 30 undefined coordinates alternate between 1 and 0. If all of these
    coordinates are 0, or none is, XOR has a 0; if zeros alternate with other numbers, it may have
    none.
    """
    flags = [0, 0, *[1, 0] * 15]
    nodes = """  differs:
    operator: ELEMENT_WISE_LOGICAL_XOR
    desc: {ATensor: coordinates.OutputCoordinatesTensor, BTensor: divisor,
           OutputTensor: {Sizes: [32, 1], DataType: UINT8}}
  least:
    operator: TOP_K1
    desc: {InputTensor: differs, OutputValueTensor: {Sizes: [1, 1]},
           OutputIndexTensor: {Sizes: [1, 1], DataType: UINT32}, Axis: 0, K: 1,
           AxisDirection: INCREASING}
outputs: {y: least.OutputValueTensor}"""
    graph = graph_of_coordinates(nodes).replace(str([3] * 32), str(flags))
    assert status_of(graph_case(tmp_path, graph), {"y": [1]}) is Status.UNCHECKED
    certain = graph.replace("XOR", "AND").replace(str(flags), str([0] * 32))
    assert passes(graph_case(tmp_path, certain), "y", [0])


ROOTS_AND_POLES = """
inputs:
  x: {Sizes: [1, 3], DataType: FLOAT32, values: [1.5707, 0, 1]}
  z: {Sizes: [1, 3], DataType: FLOAT32, values: [DIVISOR, 0, 1]}
nodes:
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  root: {operator: ELEMENT_WISE_SQRT, desc: {InputTensor: cosine, OutputTensor: {}}}
  divisor: {operator: ELEMENT_WISE_COS, desc: {InputTensor: z, OutputTensor: {}}}
  quotient: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: divisor, OutputTensor: {}}}
  both:
    operator: JOIN
    desc: {InputTensors: [root, quotient],
           OutputTensor: {Sizes: [2, 3], DataType: FLOAT32}, Axis: 0}
  sorted:
    operator: TOP_K1
    desc: {InputTensor: both, OutputValueTensor: {Sizes: [2, 3]},
           OutputIndexTensor: {Sizes: [2, 3], DataType: UINT32}, Axis: 1, K: 3,
           AxisDirection: DECREASING}
  index:
    operator: ARGMAX
    desc: {InputTensor: sorted.OutputValueTensor,
           OutputTensor: {Sizes: [2, 1], DataType: UINT32}, Axes: [1],
           AxisDirection: INCREASING}
outputs: {y: index}
"""


@pytest.mark.parametrize(("divisor", "uncertain"), [("1", False), ("1.5707", True)])
def test_an_index_into_a_line_that_may_have_nan_is_open_and_so_is_one_into_a_line_with_a_pole(
    tmp_path: Path, divisor: str, uncertain: bool
) -> None:
    """The cosine of 1.5707 is 0.0001 with an error of 0.0008: its root may be NaN, which TOP_K may
    put anywhere; its reciprocal may be infinite."""
    case = graph_case(tmp_path, ROOTS_AND_POLES.replace("DIVISOR", divisor))
    for index in range(3):
        assert passes(case, "y", [index, 0]), index
    assert passes(case, "y", [2, 2]) is uncertain
