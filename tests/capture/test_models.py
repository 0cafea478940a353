"""A case that was captured from several models is written once, and names the models.

`dmlconf coverage` lists operators, values of attributes and pairs of connected operators that only
captured cases have.

The tested code is in `dmlconf/capture/models.py`, `dmlconf/cases/selecting/selection.py`,
`dmlconf/coverage/captured.py`, `dmlconf/reports/suites/coverage.py` and
`dmlconf/cli/commands/writing/coverage.py`; the captured cases are in `cases/`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from dmlconf.capture.models import write_models
from dmlconf.capture.partition import captured_partitions
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.selecting.selection import named_models
from dmlconf.documents.reader import read_document
from dmlconf.resources import cases_directory
from tests.cli.process import dmlconf_here

FILE: Final = Path(__file__).with_name("partition.bin")
"""A graph that ONNX Runtime wrote for `tests/lab/capture/net.onnx`."""

CASES_IN_FILE: Final = 7
"""Six nodes, and their graph."""


def test_shared_case_is_written_once_with_its_models(tmp_path: Path) -> None:
    captured = captured_partitions([FILE])
    written = write_models(tmp_path, {"one/net": captured, "two/net": captured})
    plan = list(load_suite([tmp_path]).plan())
    assert len(plan) == written.cases == CASES_IN_FILE
    assert not written.left_out
    for planned in plan:
        case = valid_case(planned)
        assert {"captured", "model"} <= set(case.tags)
        assert named_models(case.about.note) == ["one/net", "two/net"]


@pytest.mark.slow
def test_coverage_counts_other_cases_of_captured_uses(
    tmp_path: Path,
) -> None:
    write_models(tmp_path, {"one/net": captured_partitions([FILE])})
    (tmp_path / "own.yaml").write_text(
        "operator: MAX_POOLING\ncases:\n  - desc:\n"
        "      InputTensor: {Sizes: [1, 1, 4, 4], DataType: FLOAT32, fill: sequence}\n"
        "      OutputTensor: {Sizes: [1, 1, 2, 2], DataType: FLOAT32}\n"
        "      Strides: [2, 2]\n      WindowSize: [2, 2]\n"
        "      StartPadding: [0, 0]\n      EndPadding: [0, 0]\n"
    )
    done = dmlconf_here(tmp_path, "coverage", ".", "--report", "json")
    assert done.returncode == 0, done.stderr
    captured = json.loads(done.stdout)["captured"]
    assert captured["models"] == ["one/net"]
    assert captured["cases"] == CASES_IN_FILE
    others = {(use["kind"], use["name"]): use["other_cases"] for use in captured["uses"]}
    assert others["operator", "MAX_POOLING"] == 1
    assert others["operator", "GEMM"] == 0
    assert others["attribute", "CONVOLUTION FusedActivation ACTIVATION_RELU"] == 0
    assert ("neighbours", "CONVOLUTION feeds MAX_POOLING") in others
    pooling = dmlconf_here(tmp_path, "coverage", ".", "-o", "MAX_POOLING", "--report", "json")
    # A captured MAX_POOLING, and a captured graph with a node of it.
    assert json.loads(pooling.stdout)["captured"]["cases"] == 2
    listed = dmlconf_here(tmp_path, "coverage", ".", "--missing").stdout
    assert "only captured cases have: operator GEMM" in listed
    assert "only captured cases have: operator MAX_POOLING" not in listed


@pytest.mark.whole
def test_no_pair_of_neighbours_is_only_in_captured_graphs(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "coverage", cases_directory() / "graphs", "--report", "json")
    assert done.returncode == 0, done.stderr
    uses = json.loads(done.stdout)["captured"]["uses"]
    pairs = {use["name"]: use["other_cases"] for use in uses if use["kind"] == "neighbours"}
    assert len(pairs) > 200
    assert [name for name, others in pairs.items() if not others] == []


@pytest.mark.slow
def test_every_captured_case_of_the_suite_names_its_models() -> None:
    models = set[str]()
    for path in sorted(cases_directory().glob("*/captured.yaml")):
        data = read_document(path).data  # Checking the cases would take thrice as long.
        for entry in data["cases"]:
            assert "model" in (*data.get("tags", ()), *entry.get("tags", ())), path
            names = named_models(entry.get("note"))
            assert names, f"{path}: {entry['name']}"
            models.update(names)
    assert len(models) >= 30
