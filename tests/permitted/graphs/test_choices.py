"""Indices and coordinates of elements that have errors, or are open, have several right values.

An error may make an element 0, or change its rank.

The tested code is in `dmlconf/permitted/graphs/choices.py`,
`dmlconf/permitted/graphs/nonzero.py` and `dmlconf/permitted/graphs/steps.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.model import Case
from dmlconf.permitted.graphs.nonzero import nonzero_choices
from tests.graphs.suites import graph_case
from tests.permitted.graphs.accepted import Values, accepts, graph, passes, single

NONZERO = """
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: NONZERO_COORDINATES,
         desc: {InputTensor: cosine, OutputCountTensor: {Sizes: [1], DataType: UINT32},
                OutputCoordinatesTensor: {Sizes: [4, 1], DataType: UINT32}}}"""


HALF_PI = 1.5707964
"""Its cosine may be any number from -0.0008 to 0.0008."""


NEAR_ZERO = f"\n  x: {{Sizes: [4], DataType: FLOAT32, values: [{HALF_PI}, 1, {HALF_PI}, 0]}}"
"""The cosines of elements 0 and 2 may be 0, and the others not."""


def test_the_count_may_include_elements_that_may_be_zero(
    tmp_path: Path,
) -> None:
    case = graph(tmp_path, NEAR_ZERO, NONZERO)
    for count in (2, 3, 4):
        assert accepts(case, "y", [count]), count
    for count in (1, 5):
        assert not accepts(case, "y", [count]), count


def test_coordinates_may_leave_out_only_elements_that_may_be_zero(tmp_path: Path) -> None:
    case = graph(tmp_path, NEAR_ZERO, NONZERO, "node.OutputCoordinatesTensor")
    # Rows after the last coordinate are undefined, so 9 is right there.
    for rows in ([0, 1, 2, 3], [0, 1, 3, 9], [1, 2, 3, 9], [1, 3, 9, 9]):
        assert accepts(case, "y", rows), rows
    for rows in ([2, 3, 9, 9], [3, 3, 9, 9], [0, 0, 2, 3]):
        assert not accepts(case, "y", rows), rows


COORDINATES_OF_COORDINATES = (
    NONZERO.replace("node:", "first:")
    + """
  node: {operator: NONZERO_COORDINATES,
         desc: {InputTensor: first.OutputCoordinatesTensor,
                OutputCountTensor: {Sizes: [1], DataType: UINT32},
                OutputCoordinatesTensor: {Sizes: [4, 2], DataType: UINT32}}}"""
)


def test_coordinates_that_may_be_zero_may_be_counted(
    tmp_path: Path,
) -> None:
    """The first node gives [0, 1, 2, 3], [0, 1, 3, ?], [1, 2, 3, ?] or [1, 3, ?, ?]."""
    count = graph(tmp_path, NEAR_ZERO, COORDINATES_OF_COORDINATES, "node.OutputCountTensor")
    for number in (2, 3, 4):
        assert accepts(count, "y", [number]), number
    for number in (0, 5):
        assert not accepts(count, "y", [number]), number
    rows = graph(tmp_path, NEAR_ZERO, COORDINATES_OF_COORDINATES, "node.OutputCoordinatesTensor")
    assert accepts(rows, "y", [0, 0, 1, 0, 2, 0, 3, 0])
    assert accepts(rows, "y", [1, 0, 2, 0, 3, 0, 9, 9])
    assert not accepts(rows, "y", [2, 0, 3, 0, 9, 9, 9, 9])
    assert not accepts(rows, "y", [1, 1, 2, 0, 3, 0, 9, 9])


def test_each_of_300_elements_may_be_zero_or_not(tmp_path: Path) -> None:
    inputs = f"\n  x: {{Sizes: [300], DataType: FLOAT32, values: {[HALF_PI] * 300}}}"
    case = graph(tmp_path, inputs, NONZERO.replace("[4, 1]", "[300, 1]"))
    for count in (0, 150, 300):
        assert accepts(case, "y", [count]), count
    assert not accepts(case, "y", [301])


@pytest.mark.parametrize(("elements", "arrays"), [(2047, 2048), (2048, 0)])
def test_coordinates_of_too_many_elements_have_no_choices(
    tmp_path: Path, elements: int, arrays: int
) -> None:
    """For n elements there are n + 1 arrays of n numbers, and at most 2**22 numbers are tried."""
    fill = "fill: {constant: {value: 0}}"
    desc = f"""InputTensor: {{Sizes: [{elements}], DataType: FLOAT32, {fill}}},
               OutputCountTensor: {{Sizes: [1], DataType: UINT32}},
               OutputCoordinatesTensor: {{Sizes: [{elements}, 1], DataType: UINT32}}"""
    case = single(tmp_path, "NONZERO_COORDINATES", desc)
    ends = np.zeros(elements, np.float32), np.ones(elements, np.float32)
    assert len(nonzero_choices(case, *ends).get("OutputCoordinatesTensor", [])) == arrays


SQUARES_OF_INDICES = """
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  first: {operator: ARGMAX,
          desc: {InputTensor: cosine, OutputTensor: {Sizes: [8, 1], DataType: UINT32}, Axes: [1],
                 AxisDirection: INCREASING}}
  node: {operator: ELEMENT_WISE_DIFFERENCE_SQUARE,
         desc: {ATensor: first, BTensor: i, OutputTensor: {}}}"""
"""The squares of the indices of the greatest cosines, if `i` is 0."""


def test_a_later_node_may_compute_with_each_right_index(tmp_path: Path) -> None:
    inputs = f"""
  x: {{Sizes: [8, 12], DataType: FLOAT32, values: {[HALF_PI] * 96}}}
  i: {{Sizes: [8, 1], DataType: UINT32, values: [0, 0, 0, 0, 0, 0, 0, 0]}}"""
    case = graph(tmp_path, inputs, SQUARES_OF_INDICES)
    for index in range(12):
        assert accepts(case, "y", [index**2] * 8), index
    assert not accepts(case, "y", [12**2] * 8)
    assert not accepts(case, "y", [2] * 8)


CAST = (
    SQUARES_OF_INDICES[: SQUARES_OF_INDICES.index("  node:")]
    + """  node: {operator: CAST, desc: {InputTensor: first, OutputTensor: {DataType: FLOAT32}}}"""
)


def test_a_cast_of_each_right_index_is_right(tmp_path: Path) -> None:
    inputs = f"\n  x: {{Sizes: [8, 12], DataType: FLOAT32, values: {[HALF_PI] * 96}}}"
    case = graph(tmp_path, inputs, CAST)
    for index in range(12):
        assert accepts(case, "y", [index] * 8), index
    assert not accepts(case, "y", [12] * 8)


COPIED_COORDINATES = (
    NONZERO.replace("node:", "places:")
    + """
  node: {operator: TILE, desc: {InputTensor: places.OutputCoordinatesTensor,
         OutputTensor: {Sizes: [4, 1]}, Repeats: [1, 1]}}"""
)


GATHERED_COORDINATES = (
    NONZERO.replace("node:", "places:")
    + """
  node: {operator: GATHER,
         desc: {InputTensor: places.OutputCoordinatesTensor, IndicesTensor: rows, Axis: 0,
                OutputTensor: {Sizes: [4, 1]}, IndexDimensions: 1}}"""
)
"""A copy of the coordinates if `rows` is [0, 1, 2, 3]."""


def _moved(operator: str, tensors: str) -> str:
    return NONZERO.replace("node:", "places:") + (
        f"\n  node: {{operator: {operator}, desc: {{{tensors}}}}}"
    )


JOINED_COORDINATES = _moved(
    "JOIN",
    "InputTensors: [places.OutputCoordinatesTensor], OutputTensor: {Sizes: [4, 1]}, Axis: 0",
)
SPLIT_COORDINATES = _moved(
    "SPLIT",
    "InputTensor: places.OutputCoordinatesTensor, OutputTensors: [{Sizes: [4, 1]}], Axis: 0",
)
PADDED_COORDINATES = _moved(
    "PADDING",
    "InputTensor: places.OutputCoordinatesTensor, OutputTensor: {Sizes: [4, 1]}, "
    "PaddingMode: EDGE, PaddingValue: 0, DimensionCount: 2, "
    "StartPadding: [0, 0], EndPadding: [0, 0]",
)

ROWS = "\n  rows: {Sizes: [1, 4], DataType: UINT32, values: [0, 1, 2, 3]}"


@pytest.mark.parametrize(
    ("inputs", "nodes"),
    [
        (NEAR_ZERO, COPIED_COORDINATES),
        (NEAR_ZERO + ROWS, GATHERED_COORDINATES),
        (NEAR_ZERO, JOINED_COORDINATES),
        (NEAR_ZERO, SPLIT_COORDINATES),
        (NEAR_ZERO, PADDED_COORDINATES),
    ],
    ids=["TILE", "GATHER", "JOIN", "SPLIT", "PADDING"],
)
def test_copied_coordinates_have_the_same_choices(inputs: str, nodes: str, tmp_path: Path) -> None:
    case = graph(tmp_path, inputs, nodes)
    for rows in ([0, 1, 2, 3], [1, 2, 3, 9], [1, 3, 9, 9]):
        assert accepts(case, "y", rows), rows
    assert not accepts(case, "y", [2, 3, 9, 9])


TWO_WAYS = (
    SQUARES_OF_INDICES.replace("BTensor: i", "BTensor: clipped")
    + """
  clipped: {operator: ELEMENT_WISE_CLIP1, desc: {InputTensor: first, OutputTensor: {},
            MinMaxDataType: UINT32, Min: 3, Max: 5}}"""
)
"""The squared difference of an index and the clipped index."""


def test_an_index_has_the_same_value_on_two_ways(
    tmp_path: Path,
) -> None:
    inputs = f"\n  x: {{Sizes: [8, 12], DataType: FLOAT32, values: {[HALF_PI] * 96}}}"
    case = graph(tmp_path, inputs, TWO_WAYS)
    for index in range(12):
        assert accepts(case, "y", [(index - min(max(index, 3), 5)) ** 2] * 8), index
    # It would need the index 11 in one way, and 3 or less in the other.
    assert not accepts(case, "y", [(11 - 3) ** 2] * 8)


READS_PRODUCTS = """
  product: {operator: GEMM, desc: {ATensor: a, BTensor: b, OutputTensor: {Sizes: [1, 1, 1, 3]},
            TransA: NONE, TransB: NONE, Alpha: 1, Beta: 0}}
  node: {operator: OPERATOR}"""


OVERFLOWING = """
  a: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [3.0e+38, 3.0e+38, -3.0e+38]}
  b: {Sizes: [1, 1, 3, 3], DataType: FLOAT32, values: [1, 0, 0, 1, 0, 0, 1, 0, 0]}"""
"""The first of three products may overflow, and is open to later nodes."""


ONE_INDEX = "{Sizes: [1, 1, 1, 1], DataType: UINT32}"


TOP_K = (
    f"TOP_K, desc: {{InputTensor: product, OutputIndexTensor: {ONE_INDEX}, Axis: 3, K: 1, "
    "OutputValueTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}}"
)


COUNT_OF_OPEN = """NONZERO_COORDINATES,
         desc: {InputTensor: product, OutputCountTensor: {Sizes: [1], DataType: UINT32},
                OutputCoordinatesTensor: {Sizes: [3, 1], DataType: UINT32}}"""


def test_an_open_element_may_be_zero_or_not(tmp_path: Path) -> None:
    """The line is an open element, 0, and -3e38 * 1e-37."""
    nodes = READS_PRODUCTS.replace("OPERATOR", COUNT_OF_OPEN)
    inputs = OVERFLOWING.replace("1, 0, 0]}", "1, 0, 1.0e-37]}")
    count = graph(tmp_path, inputs, nodes)
    for number in (1, 2):
        assert accepts(count, "y", [number]), number
    for number in (0, 3):
        assert not accepts(count, "y", [number]), number
    rows = graph(tmp_path, inputs, nodes, "node.OutputCoordinatesTensor")
    for indices in ([0, 2, 9], [2, 9, 9]):
        assert accepts(rows, "y", indices), indices
    for indices in ([1, 2, 9], [3, 2, 9]):
        assert not accepts(rows, "y", indices), indices


def test_top_k_beside_an_open_element_gives_any_index(tmp_path: Path) -> None:
    """TOP_K may give any element of a line with NaN."""
    nodes = READS_PRODUCTS.replace("OPERATOR", TOP_K)
    case = graph(tmp_path, OVERFLOWING, nodes, "node.OutputIndexTensor")
    for index in range(3):
        assert accepts(case, "y", [index]), index
    for index in (3, 2**31, 2**32 - 1):
        assert not accepts(case, "y", [index]), index


INDEX_OF = (
    f"OPERATOR, desc: {{InputTensor: product, OutputTensor: {ONE_INDEX}, Axes: [3], "
    "AxisDirection: DECREASING}"
)


REDUCTION = (
    f"REDUCE, desc: {{InputTensor: product, OutputTensor: {ONE_INDEX}, Axes: [3], "
    "Function: OPERATOR}"
)


@pytest.mark.parametrize("operator", [INDEX_OF, REDUCTION], ids=["operator", "function of REDUCE"])
@pytest.mark.parametrize(("function", "wrong"), [("ARGMAX", 2), ("ARGMIN", 1)])
def test_argmax_and_argmin_beside_an_open_element_compare_the_others(
    tmp_path: Path, operator: str, function: str, wrong: int
) -> None:
    """The line is an open element, 5 and 3."""
    inputs = """
  a: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [3.0e+38, -3.0e+38, 1]}
  b: {Sizes: [1, 1, 3, 3], DataType: FLOAT32, values: [2, 0, 0, 2, 0, 0, 1, 5, 3]}"""
    case = graph(
        tmp_path, inputs, READS_PRODUCTS.replace("OPERATOR", operator).replace("OPERATOR", function)
    )
    for index in range(3):
        assert accepts(case, "y", [index]) is (index != wrong), index
    assert not accepts(case, "y", [3])


READS_PRODUCTS_AND_INFINITY = READS_PRODUCTS.replace(
    "  node:",
    """  line: {operator: JOIN, desc: {InputTensors: [infinity, product], Axis: 3,
         OutputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32}}}
  node:""",
)


INFINITY = "\n  infinity: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [.inf]}"


@pytest.mark.parametrize(
    ("operator", "outputs"),
    [
        (
            INDEX_OF.replace("OPERATOR", "ARGMAX").replace("DECREASING", "INCREASING"),
            [[index] for index in range(4)],
        ),
        (
            "ACTIVATION_HARDMAX1, desc: {InputTensor: product, OutputTensor: {}, Axes: [3]}",
            np.eye(4).tolist(),
        ),
    ],
    ids=["ARGMAX", "HARDMAX"],
)
def test_an_open_element_may_come_before_an_infinity(
    tmp_path: Path, operator: str, outputs: list[Values]
) -> None:
    """The line is infinity, an open element, 0 and 0."""
    nodes = READS_PRODUCTS_AND_INFINITY.replace("OPERATOR", operator.replace("product", "line"))
    case = graph(tmp_path, OVERFLOWING + INFINITY, nodes)
    for first, values in enumerate(outputs):
        assert accepts(case, "y", values) is (first < 2), first


READS_SUMS = """
  quotients: {operator: ELEMENT_WISE_DIVIDE, desc: {ATensor: a, BTensor: b, OutputTensor: {}}}
  sums: {operator: ELEMENT_WISE_ADD, desc: {ATensor: quotients, BTensor: c, OutputTensor: {}}}
  node: {operator: OPERATOR}"""


DIVIDED = """
  a: {Sizes: [1, 1, 1, 5], DataType: INTEGER, values: [7, 9, 3, 9, 5]}
  b: {Sizes: [1, 1, 1, 5], DataType: INTEGER, values: [1, 1, 1, 0, 1]}
  c: {Sizes: [1, 1, 1, 5], DataType: INTEGER, values: [0, 0, 0, 0, 0]}"""
"""The sums are 7, 9, 3, an open element, and 5."""


@pytest.mark.parametrize("integer", ["INT32", "INT64"])
@pytest.mark.parametrize(
    ("direction", "right", "wrong"),
    [
        ("DECREASING", [[1, 0], [3, 1], [1, 3]], [[0, 1], [2, 1], [4, 0], [1, 2], [1, 4]]),
        ("INCREASING", [[2, 4], [3, 2], [2, 3]], [[4, 2], [0, 2], [1, 2], [2, 0], [2, 1]]),
    ],
)
def test_top_k_beside_an_open_integer_gives_possible_ranks(
    tmp_path: Path, integer: str, direction: str, right: list[Values], wrong: list[Values]
) -> None:
    operator = (
        f"TOP_K1, desc: {{InputTensor: sums, Axis: 3, K: 2, AxisDirection: {direction}, "
        "OutputIndexTensor: {Sizes: [1, 1, 1, 2], DataType: UINT32}, "
        f"OutputValueTensor: {{Sizes: [1, 1, 1, 2], DataType: {integer}}}}}"
    )
    inputs = DIVIDED.replace("INTEGER", integer)
    nodes = READS_SUMS.replace("OPERATOR", operator)
    case = graph(tmp_path, inputs, nodes, "node.OutputIndexTensor")
    for indices in right:
        assert accepts(case, "y", indices), indices
    for indices in wrong:
        assert not accepts(case, "y", indices), indices


def test_hardmax_beside_an_open_element_marks_a_possible_maximum(
    tmp_path: Path,
) -> None:
    operator = "ACTIVATION_HARDMAX1, desc: {InputTensor: product, OutputTensor: {}, Axes: [3]}"
    case = graph(tmp_path, OVERFLOWING, READS_PRODUCTS.replace("OPERATOR", operator))
    # The line is an open element, 0 and 0; of equal elements the first is marked.
    for right in ([1, 0, 0], [0, 1, 0]):
        assert accepts(case, "y", right), right
    impossible: list[Values] = [[0.5, 0, 0], [1, 0, 7], [np.nan, 0, 0], [0, 0, 1]]
    for wrong in impossible:
        assert not accepts(case, "y", wrong), wrong


READS_COSINES = """
inputs:
  x: {Sizes: [SIZE], DataType: FLOAT32, values: VALUES}
nodes:
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  index:
    operator: OPERATOR
outputs: {y: index.OUTPUT}
"""


NEARLY_EQUAL = f"[{', '.join(f'{at}.0e-5' for at in range(1, 41))}, 3]"
"""Each of the first 40 cosines may be the greatest; the cosine of 3 is the least."""

GREATEST = READS_COSINES.replace(
    "OPERATOR",
    """ARGMAX
    desc: {InputTensor: cosine, OutputTensor: {Sizes: [1], DataType: UINT32}, Axes: [0],
           AxisDirection: INCREASING}""",
).replace("OUTPUT", "OutputTensor")


LEAST_TWO = READS_COSINES.replace(
    "OPERATOR",
    """TOP_K1
    desc: {InputTensor: cosine, OutputValueTensor: {Sizes: [2]},
           OutputIndexTensor: {Sizes: [2], DataType: UINT32}, Axis: 0, K: 2,
           AxisDirection: INCREASING}""",
).replace("OUTPUT", "OutputIndexTensor")


def nearly_equal(tmp_path: Path, text: str) -> Case:
    """Return a graph that orders the cosines of `NEARLY_EQUAL`."""
    return graph_case(tmp_path, text.replace("VALUES", NEARLY_EQUAL).replace("SIZE", "41"))


@pytest.mark.slow
def test_argmax_gives_only_indices_of_possible_maxima(tmp_path: Path) -> None:
    case = nearly_equal(tmp_path, GREATEST)
    assert [index for index in range(41) if passes(case, "y", [index])] == list(range(40))


@pytest.mark.slow
def test_each_rank_accepts_only_possible_indices(tmp_path: Path) -> None:
    case = nearly_equal(tmp_path, LEAST_TWO)
    assert [index for index in range(40) if passes(case, "y", [40, index])] == list(range(40))
    for wrong in ([2, 0], [0, 40]):
        assert not passes(case, "y", wrong), wrong


def test_indices_of_exact_values_are_exact(tmp_path: Path) -> None:
    exact = GREATEST.replace("VALUES", "[3, 0, 2, 1]").replace("SIZE", "4")
    case = graph_case(tmp_path, exact)
    assert passes(case, "y", [1])
    assert not any(passes(case, "y", [index]) for index in (0, 2, 3))


def test_hardmax_marks_any_possible_maximum(tmp_path: Path) -> None:
    text = READS_COSINES.replace(
        "OPERATOR",
        """ACTIVATION_HARDMAX1
    desc: {InputTensor: cosine, OutputTensor: {}, Axes: [0]}""",
    ).replace("OUTPUT", "OutputTensor")
    case = nearly_equal(tmp_path, text)
    marks = np.eye(41).tolist()
    assert [at for at in range(41) if passes(case, "y", marks[at])] == list(range(40))
