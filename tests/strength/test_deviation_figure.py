"""The figure "by deviation" of `strength` counts failing perturbations that targets excuse.

The tested code is in `dmlconf/strength/deviation_figure.py`,
`dmlconf/reports/strength/deviations.py` and `dmlconf/cli/commands/writing/strength.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.process import dmlconf_here

SUITE = """\
operator: {operator}
cases:
  - name: three
    desc:
      InputTensor: {{Sizes: [3], DataType: FLOAT32, values: [0.5, 1, 2]}}
      OutputTensor: {{Sizes: [3], DataType: FLOAT32}}
"""


def _figure(folder: Path, operator: str, threshold: float, code: int, rest: str = "") -> Any:
    """Return the figure's part of the JSON report for a case that ends with the lines `rest`."""
    (folder / "three.yaml").write_text(SUITE.format(operator=operator) + rest, encoding="utf-8")
    options = ("--figure", "deviations", "-q", "--report", "json:s.json")
    fail_under = ("--fail-under", f"deviations={threshold}")
    done = dmlconf_here(folder, "strength", "three.yaml", *options, *fail_under)
    assert done.returncode == code, done.stderr
    return json.loads((folder / "s.json").read_text("utf-8"))["deviations"]


def test_onnx_excuses_1000_ulp_and_webnn_does_not(tmp_path: Path) -> None:
    found = _figure(tmp_path, "ACTIVATION_SIGMOID", 90, code=1)
    onnx = {"failing": 5, "excused": 1, "share": 80, "by_deviation": {"onnx-precision": 1}}
    webnn = {"failing": 5, "excused": 0, "share": 100, "by_deviation": {}}
    assert found == {"onnx": onnx, "webnn": webnn}


def test_nothing_excuses_an_operator_without_deviations(tmp_path: Path) -> None:
    found = _figure(tmp_path, "ELEMENT_WISE_NEGATE", 100, code=0)
    assert [each["excused"] for each in found.values()] == [0, 0]
    assert all(each["failing"] == 5 for each in found.values())


def test_perturbations_that_the_case_permits_do_not_count(tmp_path: Path) -> None:
    # One of the five perturbations, 1,000 ULP, is within this tolerance.
    wide = "    tolerance: {OutputTensor: {ulp: 2000, reason: a test}}\n"
    found = _figure(tmp_path, "ELEMENT_WISE_NEGATE", 100, code=0, rest=wide)
    assert [each["failing"] for each in found.values()] == [4, 4]


def test_a_case_that_a_target_cannot_express_does_not_count(tmp_path: Path) -> None:
    found = _figure(tmp_path, "ELEMENT_WISE_ATAN", 0, code=0)
    assert found["onnx"]["failing"] > 0
    assert found["webnn"]["failing"] == 0
