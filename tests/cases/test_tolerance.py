"""A case may state a tolerance for its outputs, and an origin of its expected values.

A tolerance may permit more than the operator's precision rule only if it states a reason.

The tested code is in `dmlconf/cases/tolerance.py`, `dmlconf/cases/building/operator_build.py`,
`dmlconf/judging/judge.py` and `dmlconf/run_log/log.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, Provenance
from dmlconf.documents.schema import bundled_schema, validator
from dmlconf.judging.judge import judge
from dmlconf.run_log.log import verdict_data
from dmlconf.verdicts.verdict import Status, Verdict
from tests.cases.suites import TILE
from tests.documents.refusals import refused

SINE = """\
operator: ELEMENT_WISE_SIN
cases:
  - desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [0, 1.5707963]}
      OutputTensor: {Sizes: [2], DataType: FLOAT32}
    expect: {OutputTensor: [0, 1]}
"""


def path_of(folder: Path, *lines: str) -> Path:
    path = folder / "sine.yaml"
    path.write_text(SINE + "".join(f"    {line}\n" for line in lines))
    return path


def case_of(folder: Path, *lines: str) -> Case:
    return build(next(load_suite([path_of(folder, *lines)]).plan()))


def verdict(case: Case, *values: float) -> Verdict:
    """Return the verdict on these two output values."""
    outcome = Outputs({"OutputTensor": np.array(values, np.float32)}, 0.0)
    return judge(case, outcome, lambda case: None)


def test_a_tolerance_without_a_reason_only_permits_less(tmp_path: Path) -> None:
    by_rule = case_of(tmp_path)  # The rule of a sine permits errors up to 0.0008.
    stricter = case_of(tmp_path, "tolerance: {OutputTensor: {absolute: 0.00001}}")
    looser = case_of(tmp_path, "tolerance: {OutputTensor: {absolute: 0.5}}")
    assert verdict(by_rule, 0.0005, 1).status is Status.PASSED
    assert verdict(stricter, 0.0005, 1).status is Status.FAILED
    assert verdict(stricter, 0.000005, 1).status is Status.PASSED
    assert verdict(stricter, 0.000005, 1).figures["OutputTensor"].source == "tolerance of the case"
    assert verdict(looser, 0.01, 1).status is Status.FAILED
    ulp = case_of(tmp_path, "tolerance: {OutputTensor: {ulp: 1}}")
    assert verdict(ulp, 0, 1 - 2**-24).status is Status.PASSED  # The FLOAT32 number before 1.
    assert verdict(ulp, 0, 1 - 2**-22).status is Status.FAILED


def test_a_tolerance_with_a_reason_replaces_the_rule(tmp_path: Path) -> None:
    line = 'tolerance: {OutputTensor: {absolute: 0.01, relative: 0.1, reason: "tables of 8 bits"}}'
    case = case_of(tmp_path, line)
    # The limit is 0.01 where 0 is expected, and 0.01 + 0.1 * 1 where 1 is.
    judged = verdict(case, 0.009, 1.1)
    assert judged.status is Status.PASSED
    assert judged.figures["OutputTensor"].source == "tolerance of the case: tables of 8 bits"
    assert verdict(case, 0.011, 1).status is Status.FAILED
    assert verdict(case, 0, 1.12).status is Status.FAILED


def test_expected_values_with_an_origin_count_as_stated(tmp_path: Path) -> None:
    judged = verdict(case_of(tmp_path, "origin: kernel tests of Example 2.3"), 0, 1)
    assert judged.expectation is Provenance.STATED
    data = verdict_data(judged)
    assert data["origin"] == "kernel tests of Example 2.3"
    schema = bundled_schema("run-log")
    checker = validator({"$defs": schema["$defs"], "$ref": "#/$defs/verdictLine"})
    assert not list(checker.iter_errors({"record": "verdict", **data, "tags": list(data["tags"])}))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tolerance: {InputTensor: {ulp: 1}}", "the desc has no output InputTensor"),
        ("tolerance: {OutputTensor: {reason: why}}", "has no limit"),
        ("tolerance: {OutputTensor: {ulp: 1, absolute: 1}}", "`ulp` cannot be combined"),
        ("tolerance: {OutputTensor: {ulp: 0}}", "0 is not a number above 0"),
        ("tolerance: {OutputTensor: {ulp: .nan}}", "nan is not a number above 0"),
        ("tolerance: {OutputTensor: {ulp: true}}", "must be a number, not true"),
        ("tolerance: {OutputTensor: {relative: .inf}}", "an infinite limit judges nothing"),
        (
            f"tolerance: {{OutputTensor: {{absolute: 1{'0' * 309}}}}}",
            "an infinite limit judges nothing",
        ),
        ("tolerance: {OutputTensor: {ulps: 1}}", "unknown field `ulps`"),
    ],
)
def test_an_invalid_tolerance_is_refused_with_its_line(
    tmp_path: Path, line: str, message: str
) -> None:
    path = path_of(tmp_path, line)
    assert message in refused(path)
    assert "sine.yaml:7:" in refused(path)


def test_an_integer_output_cannot_have_an_ulp_tolerance(tmp_path: Path) -> None:
    path = tmp_path / "tile.yaml"
    text = TILE.replace("FLOAT32", "INT32")
    path.write_text(f"{text}    tolerance: {{OutputTensor: {{ulp: 1}}}}\n")
    assert "`ulp` cannot be combined with other limits, and is for floating-point" in refused(path)


def test_an_origin_without_expected_values_is_refused(tmp_path: Path) -> None:
    path = path_of(tmp_path, "origin: elsewhere")
    path.write_text(path.read_text().replace("    expect: {OutputTensor: [0, 1]}\n", ""))
    assert "there are none" in refused(path)


def test_an_origin_beside_a_recording_is_refused(tmp_path: Path) -> None:
    message = refused(path_of(tmp_path, "origin: elsewhere", "recorded: DirectML 1.15.4"))
    assert "cannot have `origin` and `recorded`" in message
