"""Coverage says for which documented parts of an operator a suite has cases.

The tested code is in `dmlconf/coverage/measure.py`, `dmlconf/reports/suites/coverage.py` and
`dmlconf/cli/commands/writing/coverage.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.catalogue.loader import operator
from dmlconf.coverage.measure import OperatorCoverage, Part, documented_parts, measure
from dmlconf.resources import cases_directory
from tests.cli.process import dmlconf_here

TWO_CASES = """
operator: ARGMIN
cases:
  - name: one
    example: 2, first half
    desc:
      InputTensor: {Sizes: [3], DataType: INT64, values: [3, 1, 2]}
      OutputTensor: {Sizes: [1], DataType: UINT32}
      Axes: [0]
      AxisDirection: INCREASING
    expect: {OutputTensor: [1]}
  - name: invalid
    desc:
      InputTensor: {Sizes: [3], DataType: FLOAT32}
      OutputTensor: {Sizes: [1], DataType: UINT32}
      Axes: [7]
      AxisDirection: DECREASING
    expect: {rejected: E_INVALIDARG, constraint: axes-in-range}
"""


def coverage_of_argmin(directory: Path, text: str) -> OperatorCoverage:
    """Return the coverage of ARGMIN by a case file; the case `one` counts as recorded."""
    path = directory / "few.yaml"
    path.write_text(text, encoding="utf-8")
    cases = map(build, load_suite([path]).plan())
    return measure([operator("ARGMIN")], cases, lambda case: case.identifier.endswith("one"))[
        "ARGMIN"
    ]


def test_a_case_covers_only_its_own_parts(tmp_path: Path) -> None:
    row = coverage_of_argmin(tmp_path, TWO_CASES)
    shown = {part for part, count in row.parts.items() if count}
    assert shown == {
        Part("support", "InputTensor INT64, rank 1, at 4_1"),
        Part("support", "OutputTensor UINT32, rank 1, at 4_1"),
        Part("attribute", "AxisDirection INCREASING"),
        Part("example", "2"),
        Part("constraint", "axes-in-range"),
    }
    assert row.recorded == 1
    assert Part("attribute", "AxisDirection DECREASING") in row.missing


def test_case_also_covers_the_table_of_an_older_level(tmp_path: Path) -> None:
    row = coverage_of_argmin(tmp_path, TWO_CASES.replace("INT64", "INT32"))
    assert row.parts[Part("support", "InputTensor INT32, rank 1, at 4_1")] == 1
    assert row.parts[Part("support", "InputTensor INT32, rank 1, at 3_0")] == 1


PADDED = """
operator: PADDING
cases:
  - name: one
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [3, 1]}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
      PaddingMode: WRAP
      PaddingValue: 0
      StartPadding: [1]
      EndPadding: [0]
    expect: {OutputTensor: [1, 3, 1]}
"""


def test_case_covers_no_level_that_lacks_its_padding_mode(tmp_path: Path) -> None:
    path = tmp_path / "few.yaml"
    cells = [
        Part("support", f"InputTensor FLOAT32, rank 1, at {since}") for since in ("3_1", "5_0")
    ]
    counts = {}
    for mode, values in (("WRAP", "[1, 3, 1]"), ("EDGE", "[3, 3, 1]")):
        path.write_text(PADDED.replace("WRAP", mode).replace("[1, 3, 1]", values), encoding="utf-8")
        row = measure([operator("PADDING")], map(build, load_suite([path]).plan()), lambda _: False)
        counts[mode] = [row["PADDING"].parts[cell] for cell in cells]
    assert counts == {"WRAP": [0, 1], "EDGE": [1, 1]}


def test_values_that_need_a_higher_level_are_parts() -> None:
    parts = [part.name for part in documented_parts(operator("GEMM")) if part.kind == "level"]
    assert parts == [
        "6_1 for FusedActivation ACTIVATION_SOFTMAX",
        "6_1 for FusedActivation ACTIVATION_SOFTMAX1",
        "6_0 for FusedActivation ELEMENT_WISE_CLIP",
    ]


def test_each_data_type_and_rank_of_argmin_is_one_part() -> None:
    entry = operator("ARGMIN")
    cells = [
        f"{tensor} {data_type}, rank {rank}, at {table.since}"
        for table in entry.support
        for tensor, support in table.tensors.items()
        for data_type in support.data_types
        for rank in range(support.ranks[0], support.ranks[1] + 1)
    ]
    parts = list(documented_parts(entry))
    assert sorted(part.name for part in parts if part.kind == "support") == sorted(cells)
    assert len(set(parts)) == len(parts)


def test_command_lists_missing_parts_and_fails_below_a_share(
    tmp_path: Path,
) -> None:
    (tmp_path / "few.yaml").write_text(TWO_CASES, encoding="utf-8")
    process = dmlconf_here(
        tmp_path, "coverage", "few.yaml", "-o", "ARGMIN", "--missing", "--fail-under", "50"
    )
    assert process.returncode == 1
    assert "ARGMIN: attribute AxisDirection DECREASING" in process.stdout
    assert "is below 50%" in process.stderr


@pytest.mark.slow
def test_the_command_reports_as_json_and_markdown(tmp_path: Path) -> None:
    (tmp_path / "few.yaml").write_text(TWO_CASES, encoding="utf-8")
    process = dmlconf_here(
        tmp_path, "coverage", "few.yaml", "--report", "json", "--report", "markdown:coverage.md"
    )
    data = json.loads(process.stdout)
    assert data["summary"]["operators_with_cases"] == 1
    [argmin] = [row for row in data["operators"] if row["operator"] == "ARGMIN"]
    assert argmin["cases"] == 2
    assert "- GATHER: no case" in (tmp_path / "coverage.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "shown", "left_out"),
    [
        ("80", {"Cases", "Missing"}, {"Documented", "Attributes"}),
        ("110", {"Documented", "Invalid", "Missing"}, {"Cases", "Attributes"}),
        ("150", {"Documented", "Invalid", "Attributes"}, {"Cases", "Missing"}),
    ],
)
def test_table_has_the_columns_that_fit_the_terminal(
    tmp_path: Path, width: str, shown: set[str], left_out: set[str]
) -> None:
    process = dmlconf_here(
        tmp_path, "coverage", str(cases_directory() / "tile"), "-o", "TILE", COLUMNS=width
    )
    assert process.returncode == 0
    assert max(map(len, process.stdout.splitlines())) <= int(width)
    headings = set(process.stdout.splitlines()[0].split())
    assert shown <= headings
    assert not left_out & headings


def test_an_unknown_operator_is_refused_with_the_most_similar_name(tmp_path: Path) -> None:
    process = dmlconf_here(tmp_path, "coverage", "-o", "TILES")
    assert process.returncode == 2
    assert "did you mean TILE?" in process.stderr


def test_values_that_a_constraint_refuses_are_not_parts() -> None:
    parts = {part.name for part in documented_parts(operator("ROI_ALIGN"))}
    assert {"ReductionFunction AVERAGE", "ReductionFunction MAX"} <= parts
    assert "ReductionFunction SUM" not in parts


def test_impossible_parts_are_reported_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "few.yaml").write_text(TWO_CASES, encoding="utf-8")
    process = dmlconf_here(
        tmp_path,
        "coverage",
        "few.yaml",
        "-o",
        "QUANTIZED_LINEAR_CONVOLUTION",
        "--report",
        "json",
        "--missing",
    )
    [row] = json.loads(process.stdout)["operators"]
    names = {part["name"] for part in row["gaps"]}
    assert "FilterZeroPointTensor INT8, rank 2, at 4_0" in names
    assert names.isdisjoint(part["name"] for part in row["parts"])
    assert all("FilterScaleTensor" in part["reason"] for part in row["gaps"])
