"""The figure "by case" counts what each case notices; a sample has cases of each operator.

The tested code is in `dmlconf/strength/measure.py`, `dmlconf/strength/sampling.py`,
`dmlconf/strength/tallies.py`, `dmlconf/reports/strength/cases.py` and
`dmlconf/cli/commands/writing/strength.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

from dmlconf.backends.numpy.backend import run_case
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.reports.strength.cases import case_lines, case_share, unnoticing_cases
from dmlconf.strength.measure import Method, Strength, measure
from dmlconf.strength.sampling import sampled
from dmlconf.strength.tallies import CaseTally
from tests.bundled import bundled
from tests.cli.process import dmlconf_here

TILES = """
operator: TILE
cases:
  - name: all-different
    desc:
      InputTensor: {Sizes: [3, 5], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [6, 10], DataType: FLOAT32}
      Repeats: [2, 2]
  - name: all-alike
    desc:
      InputTensor: {Sizes: [3, 5], DataType: FLOAT32, fill: {constant: {value: 1}}}
      OutputTensor: {Sizes: [6, 10], DataType: FLOAT32}
      Repeats: [2, 2]
"""


def measure_suite(directory: Path) -> Strength:
    file = directory / "suite.yaml"
    file.write_text(TILES, encoding="utf-8")
    method = Method(perturbations=False)
    return measure(map(build, load_suite([file]).plan()), run_case, method=method)


def test_case_of_equal_values_notices_fewer_defects(
    tmp_path: Path,
) -> None:
    noticed = measure_suite(tmp_path).noticed
    different, alike = noticed["tile/suite/all-different"], noticed["tile/suite/all-alike"]
    assert 0 < alike.caught < different.caught <= different.ran
    assert case_share({"a": alike}) < case_share({"a": different})


def test_cases_that_notice_no_defect_lower_the_share() -> None:
    noticed = {"useful": CaseTally("TILE", 4, 1), "useless": CaseTally("TILE", 3, 0)}
    assert unnoticing_cases(noticed) == ["useless"]
    assert list(case_lines(noticed)) == ["notices no defect: TILE: useless"]
    assert case_share(noticed) == 100 / 7  # 1 of 4 + 3 defects, in percent.


def test_sample_has_each_operator_and_depends_on_seed() -> None:
    plan = list(bundled("tile", "join").plan())
    some = sampled(plan, 7, 1)
    operators = [planned.template.operator_name for planned in some]
    assert (operators.count("TILE"), operators.count("JOIN")) == (7, 7)
    assert sampled(plan, 7, 1) == some
    assert sampled(plan, 7, 2) != some
    assert sampled(plan, None, 1) == plan


def test_fail_under_cases_fails_below_its_share(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(TILES, encoding="utf-8")
    report = tmp_path / "strength.json"
    arguments = ("strength", "suite.yaml", "--figure", "defects", "--report", f"json:{report}")
    process = dmlconf_here(tmp_path, *arguments, "--fail-under", "cases=99")
    assert process.returncode == 1
    assert "by case: " in process.stderr
    data = json.loads(report.read_text("utf-8"))
    assert data["by_case"]["cases"] == 2
    assert data["by_case"]["noticing_nothing"] == []
    assert dmlconf_here(tmp_path, *arguments, "--fail-under", "cases=50").returncode == 0
