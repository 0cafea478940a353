"""`dmlconf coverage --combinations` says of each pair of parameter values whether a case has it.

A pair is covered by a case, missing, or impossible for a reason.

The tested code is in `dmlconf/coverage/combinations/measure.py`,
`dmlconf/coverage/combinations/exclusions.py`, `dmlconf/coverage/combinations/parameters.py`,
`dmlconf/coverage/combinations/classes.py`, `dmlconf/reports/suites/combinations.py`,
`dmlconf/tensors/layout.py` and `dmlconf/cli/commands/writing/coverage.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.catalogue.graph import graph_entry
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.coverage.combinations.classes import class_of
from dmlconf.coverage.combinations.exclusions import reason
from dmlconf.coverage.combinations.measure import CombinationCoverage, measure_combinations
from dmlconf.coverage.combinations.parameters import parameters_of, values_of
from dmlconf.resources import cases_directory
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.layout import LAYOUTS, layout_class
from tests.cli.process import dmlconf_here

CASES = """
operator: GEMM
cases:
  - name: both-transposed
    desc:
      ATensor: {Sizes: [33, 33], DataType: FLOAT16, layout: padded, fill: sequence}
      BTensor: {Sizes: [33, 33], DataType: FLOAT16, Flags: [OWNED_BY_DML], fill: sequence}
      OutputTensor: {Sizes: [33, 33], DataType: FLOAT16}
      TransA: TRANSPOSE
      TransB: TRANSPOSE
      Alpha: 1
      Beta: 0
  - name: refused
    desc:
      ATensor: {Sizes: [3, 2], DataType: FLOAT32}
      BTensor: {Sizes: [3, 2], DataType: FLOAT32}
      OutputTensor: {Sizes: [3, 2], DataType: FLOAT32}
      TransA: NONE
      TransB: TRANSPOSE
      Alpha: 1
      Beta: 0
    expect: {rejected: E_INVALIDARG, constraint: inner-sizes}
"""


def coverage_of_gemm(folder: Path) -> CombinationCoverage:
    path = folder / "few.yaml"
    path.write_text(CASES, encoding="utf-8")
    return measure_combinations([operator("GEMM")], map(build, load_suite([path]).plan()))["GEMM"]


@pytest.mark.slow
def test_case_covers_only_the_pairs_of_its_values(tmp_path: Path) -> None:
    row = coverage_of_gemm(tmp_path)
    assert (("TransA", "TRANSPOSE"), ("square", "yes")) in row.covered
    assert (("layout of ATensor", "padded"), ("rows", "tile + 1")) in row.covered
    assert (("data type", "FLOAT16"), ("owned inputs", "some")) in row.covered
    assert (("TransA", "NONE"), ("TransB", "TRANSPOSE")) in row.missing
    assert (("data type", "FLOAT32"), ("TransB", "TRANSPOSE")) in row.missing
    # Without CTensor, these two parameters have no value.
    valued = [each for each in row.parameters if each.name not in ("layout of CTensor", "Beta")]
    assert len(valued) == len(row.parameters) - 2
    # Any two values of the case are a pair.
    assert len(row.covered) == len(valued) * (len(valued) - 1) // 2


@pytest.mark.slow
def test_each_pair_is_covered_missing_or_impossible_for_a_reason(tmp_path: Path) -> None:
    row = coverage_of_gemm(tmp_path)
    counts = [len(each.values) for each in row.parameters]
    # A pair has values of two different parameters.
    pairs = (sum(counts) ** 2 - sum(n * n for n in counts)) // 2
    assert len(row.covered) + len(row.missing) + len(row.excluded) == pairs
    assert all(row.excluded.values())
    absent = (("layout of CTensor", "padded"), ("CTensor", "absent"))
    assert row.excluded[absent] == "an absent tensor has no layout"
    assert not list(row.contradictions)


def exclusion(name: str, *pair: tuple[str, str]) -> str | None:
    """Return why no case of an operator can have this pair of values, or None if one can."""
    entry = operator(name)
    assigned = {each.name: each.assigned for each in parameters_of(entry)}
    return reason(entry, pair, tuple(a for each, value in pair for a in assigned[each](value)))


def test_pair_that_no_support_table_lists_is_impossible() -> None:
    types = exclusion("REDUCE", ("data type of InputTensor", "INT8"), ("Function", "AVERAGE"))
    assert types is not None
    assert "table" in types
    assert exclusion("REDUCE", ("data type of InputTensor", "INT32"), ("Function", "SUM")) is None


def test_pair_of_contradictory_values_is_impossible() -> None:
    flat = exclusion("REDUCE", ("dimensions", "1"), ("layout of InputTensor", "transposed"))
    assert flat == "a transposed layout needs 2 dimensions"
    whole = exclusion("CAST", ("data type of InputTensor", "INT8"), ("data", "all -infinity"))
    assert whole == "integers are whole and finite"
    indices = "OutputIndicesTensor"
    absent = exclusion("MAX_POOLING1", (f"data type of {indices}", "UINT32"), (indices, "absent"))
    assert absent == "an absent tensor has no data type"


def test_a_pair_that_schemas_combinations_excludes_is_impossible() -> None:
    infinite = "data", "all -infinity"
    wrapped = exclusion("CAST", ("data type of OutputTensor", "INT8"), infinite)
    assert wrapped is not None
    assert "may wrap around" in wrapped
    assert exclusion("CAST", ("data type of OutputTensor", "INT32"), infinite) is None


def test_layouts_that_constraints_exclude_are_impossible() -> None:
    padded = "layout of AScaleTensor", "padded"
    rank = "dimensions", "3"
    assert exclusion("ELEMENT_WISE_QUANTIZED_LINEAR_ADD", padded, rank) == "constraint one-scale"
    flat = "layout of BiasTensor", "channels-last"
    assert exclusion("LSTM", flat, ("data type", "FLOAT32")) == "constraint bias-sizes"
    rows = "layout of BiasTensor", "transposed"
    assert exclusion("LSTM", rows, ("Direction", "FORWARD")) == "constraint bias-sizes"
    assert exclusion("LSTM", rows, ("Direction", "BIDIRECTIONAL")) is None
    queries = "layout of QueryTensor", "packed"
    stacked = "layout of StackedQueryKeyTensor", "packed"
    assert (
        exclusion("MULTIHEAD_ATTENTION", queries, stacked) == "constraint one-query-key-and-value"
    )
    assert exclusion("MULTIHEAD_ATTENTION", queries, ("layout of MaskTensor", "packed")) is None


def test_a_data_type_that_a_constraint_excludes_is_impossible() -> None:
    scale = "data type of QuantizationTensors"
    assert (
        exclusion("QUANTIZE", (scale, "INT8"), ("dimensions", "4")) == "constraint scale-data-type"
    )
    assert exclusion("QUANTIZE", (scale, "FLOAT16"), ("dimensions", "4")) is None


def test_broadcast_or_owned_input_shares_no_buffer_with_the_output() -> None:
    shared = "in place", "true"
    broadcast = exclusion("ACTIVATION_RELU", ("layout of InputTensor", "broadcast"), shared)
    assert broadcast is not None
    assert "read twice" in broadcast
    assert exclusion("ACTIVATION_RELU", ("layout of InputTensor", "padded"), shared) is None
    # ELEMENT_WISE_ADD may write its output over its other input.
    assert exclusion("ELEMENT_WISE_ADD", ("layout of ATensor", "broadcast"), shared) is None
    owned = exclusion("ACTIVATION_RELU", ("owned inputs", "some"), shared)
    assert owned is not None
    assert "not bound" in owned
    assert exclusion("ELEMENT_WISE_ADD", ("owned inputs", "some"), shared) is None


@pytest.mark.slow
def test_tensors_of_one_data_type_share_a_parameter() -> None:
    def types(name: str) -> list[str]:
        names = [each.name for each in parameters_of(operator(name))]
        return [each for each in names if each.startswith("data type")]

    assert types("GEMM") == types("LSTM") == ["data type"]
    assert types("CAST") == ["data type of InputTensor", "data type of OutputTensor"]
    quantize = operator("ELEMENT_WISE_QUANTIZE_LINEAR")
    row = measure_combinations([quantize], [])[quantize.name]
    scale = ("data type of ScaleTensor", "FLOAT32"), ("ZeroPointTensor", "present")
    assert scale in row.missing


def test_graphs_have_a_parameter_for_their_constants() -> None:
    assert "constants" in [each.name for each in parameters_of(graph_entry())]


def test_each_layout_has_its_class() -> None:
    sizes = (2, 3, 4, 5)
    assert layout_class(sizes, None) == layout_class(sizes, (60, 20, 5, 1)) == "packed"
    assert layout_class((1, 7), (99, 1)) == "packed"
    assert layout_class(sizes, (80, 20, 5, 1)) == "padded"
    assert layout_class(sizes, LAYOUTS["channels-last"](sizes)) == "channels-last"
    assert layout_class((2, 3), (1, 2)) == "transposed"
    assert layout_class(sizes, (0, 20, 5, 1)) == "broadcast"


REPEATED = """
operator: REDUCE
cases:
  - matrix: {Axes: [[1, 1, 1], [1, 2, 1], [2, 1, 0, 0]]}
    desc:
      InputTensor: {Sizes: [2, 3, 5], DataType: FLOAT32, fill: sequence}
      OutputTensor:
        Sizes: ["=(1 if 0 in Axes else 2)", 1, "=(1 if 2 in Axes else 5)"]
        DataType: FLOAT32
      Function: SUM
      Axes: =Axes
"""


def test_repeated_axes_count_once(tmp_path: Path) -> None:
    path = tmp_path / "few.yaml"
    path.write_text(REPEATED, encoding="utf-8")
    at = [each.name for each in parameters_of(operator("REDUCE"))].index("axes")
    cases = map(build, load_suite([path]).plan())
    classes = [values_of(case, parameters_of(case.operator))[at] for case in cases]
    assert classes == ["one", "neighbours", "all"]


@pytest.mark.parametrize(
    ("values", "data_type", "expected"),
    [
        ([1.0, -3.0], DataType.FLOAT32, "whole"),
        ([0.5, 1.0], DataType.FLOAT32, "fractions"),
        ([0.001, 0.0], DataType.FLOAT32, "small"),
        ([300.0, 1.0], DataType.FLOAT16, "large"),
        ([300.0, 1.0], DataType.FLOAT32, "whole"),
        ([1.0, np.nan], DataType.FLOAT32, "special"),
        ([-np.inf, -np.inf], DataType.FLOAT16, "all -infinity"),
        ([-1, 1], DataType.INT64, "small"),
        ([-9, 1], DataType.INT64, "whole"),
        ([-(2**62), 1], DataType.INT64, "large"),
        ([0, 0], DataType.INT64, None),
    ],
)
def test_data_have_the_class_of_their_values(
    values: list[float], data_type: DataType, expected: str | None
) -> None:
    assert class_of(np.array(values, data_type.dtype), data_type) == expected


@pytest.mark.slow
def test_coverage_combinations_counts_pairs_and_fails_below_a_share(tmp_path: Path) -> None:
    (tmp_path / "few.yaml").write_text(CASES, encoding="utf-8")
    arguments = ["coverage", "few.yaml", "--combinations", "-o", "GEMM", "-q"]
    done = dmlconf_here(tmp_path, *arguments, "--report", "json:pairs.json", "--fail-under", "50")
    assert done.returncode == 1
    assert "is below 50%" in done.stderr
    data = json.loads((tmp_path / "pairs.json").read_text(encoding="utf-8"))
    covered = len(coverage_of_gemm(tmp_path).covered)
    assert data["summary"]["covered"] == data["operators"][0]["covered"] == covered > 0
    assert {"TransA": "NONE", "TransB": "NONE"} in data["operators"][0]["missing"]
    done = dmlconf_here(tmp_path, *arguments, "-v", "--fail-under", "1")
    assert done.returncode == 0
    assert "CTensor = absent, Beta = 0: impossible: Beta has no meaning without C." in done.stdout


@pytest.mark.whole
def test_suite_has_no_pair_that_is_called_impossible() -> None:
    plan = load_suite([cases_directory()]).plan()
    cases = (valid_case(each) for each in plan if "model" not in each.template.tags)
    rows = measure_combinations([*map(operator, operator_names()), graph_entry()], cases)
    wrong = [(name, *each) for name, row in rows.items() for each in row.contradictions]
    assert wrong == []
