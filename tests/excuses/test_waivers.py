"""Waivers excuse known failures up to a bound; a case that fails worse, or passes, is stale.

The tested code is in `dmlconf/excuses/waivers.py`, `dmlconf/excuses/waiver_file.py`,
`dmlconf/excuses/waiver_draft.py`, `dmlconf/excuses/scope.py`,
`dmlconf/cli/commands/results/waive.py` and `dmlconf/reports/runs/remarks.py`.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Environment, Outputs
from dmlconf.cases.handles import longest_handle
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.excuses.scope import VersionRange, parse_version
from dmlconf.excuses.waiver_file import UNEXPLAINED, read_waivers
from dmlconf.excuses.waivers import effective_waivers
from dmlconf.judging.judge import judge
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import Status
from tests.cli.process import dmlconf_here

SUITE = """
operator: TILE
cases:
  - name: two
    note: Twice.
    desc: &desc
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
  - name: types
    note: Each type.
    matrix: {DataType: [FLOAT32, INT32]}
    desc:
      InputTensor: {Sizes: [2], DataType: =DataType, values: [30, 40]}
      OutputTensor: {Sizes: [4], DataType: =DataType}
      Repeats: [2]
    expect: {OutputTensor: [30, 40, 30, 40]}
  - name: refused
    note: The output is too short.
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
      Repeats: [2]
    expect: {rejected: E_INVALIDARG}
"""
TWO, FLOAT32, INT32, REFUSED = (
    f"tile/small/{name}"
    for name in ("two", "types[DataType=FLOAT32]", "types[DataType=INT32]", "refused")
)

NO_CASE: dict[str, Any] = {"cases": None, "where": "Repeats[0] > 5"}
"""Fields of a waiver that waives no case of SUITE."""

SCALED = "faulty:scaled"
"""A backend whose elements are 1.1 times the right ones."""


def waiver(**fields: Any) -> dict[str, Any]:
    """Return a waiver of the case `two`, with these fields replaced; None omits one."""
    fields = {
        "name": "a-tenth-off",
        "reason": "All is a tenth too much.",
        "link": "https://bugs.example.com/1",
        "until": "2099-12-31",
        "cases": [TWO],
        "failure": "wrong values",
        "bound": {"elements": 4},
        **fields,
    }
    return {key: value for key, value in fields.items() if value is not None}


def run(folder: Path, backend: str, *waivers: dict[str, Any], **options: str) -> dict[str, Any]:
    """Run SUITE; return the verdicts by case, the exit code as `code`, and `output`."""
    (folder / "tile").mkdir(exist_ok=True)
    (folder / "tile" / "small.yaml").write_text(SUITE)
    # JSON is YAML in which dates are quoted.
    (folder / "w.yaml").write_text(json.dumps({"format": 1, "waivers": waivers}, indent=1))
    more = [text for key, value in options.items() for text in (f"--{key}", value)]
    done = dmlconf_here(
        folder,
        "run",
        "tile",
        "-b",
        backend,
        "--waivers",
        "w.yaml",
        "--report",
        "json:r.json",
        *more,
    )
    results = {"code": done.returncode, "output": done.stdout + done.stderr}
    if done.returncode in (0, 1):
        report = json.loads((folder / "r.json").read_text())
        results |= {verdict["case"]: verdict for verdict in report["verdicts"]}
    return results


def status_and_kind(result: dict[str, Any], case: str = TWO) -> tuple[str, str | None]:
    verdict = result[case]
    return verdict["status"], verdict["reason"] and verdict["reason"]["kind"]


def test_failure_within_the_bound_is_waived_and_named(tmp_path: Path) -> None:
    result = run(tmp_path, f"{SCALED},on=two", waiver())
    assert status_and_kind(result) == ("waived", "waiver")
    assert result["code"] == 0
    message = result[TWO]["reason"]["message"]
    for part in ("a-tenth-off", "a tenth too much", "bugs.example.com/1", "2099-12-31", "4 of 4"):
        assert part in message
    assert result[TWO]["reason"]["differences"]
    assert "Waived by the waivers of the run\n  1 a-tenth-off\n" in result["output"]


@pytest.mark.parametrize(
    ("scope", "jobs"),
    [
        ({"cases": ["tile/small/t*"]}, "1"),
        ({"cases": ["tile/small/t*"]}, "2"),
        ({"cases": ["tile/small/two", "tile/small/types"]}, "1"),
        ({"cases": None, "operators": ["TILE"]}, "1"),
        ({"cases": None, "where": "Repeats[0] == 2"}, "1"),
        ({"cases": None, "operators": ["TILE"], "where": "DataType in (FLOAT32, INT32)"}, "1"),
        ({"cases": ["*/two", "tile/small/types[DataType=?*]"]}, "1"),
    ],
)
def test_waiver_names_cases_by_pattern_operator_or_condition(
    tmp_path: Path, scope: dict[str, Any], jobs: str
) -> None:
    result = run(tmp_path, SCALED, waiver(**scope), jobs=jobs)
    waived = [status_and_kind(result, case) for case in (TWO, FLOAT32, INT32)]
    assert waived == [("waived", "waiver")] * 3
    assert status_and_kind(result, REFUSED) == ("passed", None)


def test_condition_waives_only_cases_that_meet_it(tmp_path: Path) -> None:
    only = waiver(cases=None, operators=["TILE"], where="InputTensor.DataType == 'INT32'")
    result = run(tmp_path, SCALED, only)
    assert status_and_kind(result, INT32) == ("waived", "waiver")
    assert status_and_kind(result, FLOAT32) == ("failed", "wrong values")
    assert result["code"] == 1


def test_waived_case_that_passes_is_stale(tmp_path: Path) -> None:
    result = run(tmp_path, "numpy", waiver())
    assert status_and_kind(result) == ("stale", "passes though waived")
    assert "Remove the case from the waiver" in result[TWO]["reason"]["message"]
    assert "w.yaml:4" in result[TWO]["reason"]["message"]
    assert result["code"] == 1


def test_intermittent_failure_may_pass(tmp_path: Path) -> None:
    assert status_and_kind(run(tmp_path, "numpy", waiver(intermittent=True))) == ("passed", None)
    assert status_and_kind(run(tmp_path, SCALED, waiver(intermittent=True))) == ("waived", "waiver")


@pytest.mark.parametrize("backend", ["faulty:zeros", "faulty:wrong-type", "faulty:crash"])
def test_failure_of_another_kind_is_stale(tmp_path: Path, backend: str) -> None:
    other = waiver(failure="hang", bound=None)
    result = run(tmp_path, f"{backend},on=two", other)
    assert status_and_kind(result) == ("stale", "fails otherwise than waived")
    assert "`hang`" in result[TWO]["reason"]["message"]


@pytest.mark.parametrize(
    ("bound", "excess"),
    [
        ({"elements": 3}, "4 elements"),
        ({"ulp": 100}, "ULP"),
        ({"elements": 4, "ulp": 1}, "ULP"),
    ],
)
def test_failure_beyond_the_bound_is_stale(
    tmp_path: Path, bound: dict[str, float], excess: str
) -> None:
    result = run(tmp_path, f"{SCALED},on=two", waiver(bound=bound))
    assert status_and_kind(result) == ("stale", "fails worse than waived")
    assert excess in result[TWO]["reason"]["message"]
    assert "widen the waiver's bound" in result[TWO]["reason"]["message"]


def test_wrong_integers_are_within_no_bound_in_ulp(tmp_path: Path) -> None:
    bounded = waiver(cases=[FLOAT32, INT32], bound={"ulp": 1e9})
    result = run(tmp_path, SCALED, bounded)
    assert status_and_kind(result, FLOAT32) == ("waived", "waiver")
    assert status_and_kind(result, INT32) == ("stale", "fails worse than waived")
    assert "OutputTensor has wrong integers" in result[INT32]["reason"]["message"]


def test_conditions_of_waivers_share_one_budget_of_steps(tmp_path: Path) -> None:
    # A condition takes 4,000 steps, and all conditions together may take 10,000.
    long = "any(i < 0 for i in range(4000)) or DataType == INT32"
    many = [waiver(name=f"w{i}", cases=None, where=long) for i in range(4)]
    result = run(tmp_path, SCALED, *many[:2])
    assert status_and_kind(result, INT32) == ("waived", "waiver")
    useful = waiver(cases=None, where="any(s == 2 for s in InputTensor.Sizes)")
    result = run(tmp_path, SCALED, *many, useful)
    assert status_and_kind(result, FLOAT32) == ("failed", "wrong values")


def test_more_than_1000_patterns_are_refused(tmp_path: Path) -> None:
    result = run(tmp_path, SCALED, waiver(cases=[f"tile/*{i}" for i in range(1001)]))
    assert result["code"] == 3
    assert "1,001 patterns with * or ?; at most 1,000" in result["output"]


def test_share_of_the_limit_can_be_the_bound(tmp_path: Path) -> None:
    folder = tmp_path / "gemm"
    folder.mkdir()
    (folder / "small.yaml").write_text("""
operator: GEMM
cases:
  - name: dot
    desc:
      ATensor: {Sizes: [1, 1, 1, 64], DataType: FLOAT32, fill: {uniform: {low: 1, high: 2}}}
      BTensor: {Sizes: [1, 1, 64, 1], DataType: FLOAT32, fill: {uniform: {low: 1, high: 2}}}
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}
      TransA: NONE
      TransB: NONE
      Alpha: 1
      Beta: 0
""")
    for share, status in ((1e9, "waived"), (2, "stale")):
        own = waiver(cases=["gemm/small/dot"], bound={"share_of_limit": share})
        (tmp_path / "w.yaml").write_text(json.dumps({"format": 1, "waivers": [own]}))
        done = dmlconf_here(
            tmp_path, "run", "gemm", "-b", SCALED, "--waivers", "w.yaml", "--report", "json:r.json"
        )
        [verdict] = json.loads((tmp_path / "r.json").read_text())["verdicts"]
        assert (verdict["status"], done.returncode) == (status, int(status == "stale"))


@pytest.mark.parametrize(
    ("backend", "kind", "message"),
    [
        (f"{SCALED},on=two", "waiver expired", "2020-02-29"),
        ("numpy", "passes though waived", "Remove the case from the waiver"),
    ],
)
def test_case_with_an_expired_waiver_is_stale(
    tmp_path: Path, backend: str, kind: str, message: str
) -> None:
    result = run(tmp_path, backend, waiver(until="2020-02-29"))
    assert status_and_kind(result) == ("stale", kind)
    assert message in result[TWO]["reason"]["message"]


def test_waiver_expires_after_its_last_day(tmp_path: Path) -> None:
    run(tmp_path, SCALED, waiver(until="2026-11-22"))
    case = valid_case(next(iter(load_suite([tmp_path / "tile"]).plan())))
    outcome = Outputs({"OutputTensor": np.array([1.1, 2.2, 1.1, 2.2], np.float32)})
    failed = judge(case, outcome, run_case)
    for day, status in ((22, Status.WAIVED), (23, Status.STALE)):
        waivers = effective_waivers(
            read_waivers(tmp_path / "w.yaml").waivers,
            Environment("numpy", "1"),
            date(2026, 11, day),
        )
        assert waivers.applied(case, outcome, failed).status is status


@pytest.mark.slow
def test_one_of_several_waivers_suffices(tmp_path: Path) -> None:
    crash = waiver(name="a-crash", failure="crash", bound=None)
    assert status_and_kind(run(tmp_path, SCALED, crash, waiver())) == ("waived", "waiver")
    assert status_and_kind(run(tmp_path, "faulty:crash", crash, waiver())) == ("waived", "waiver")


@pytest.mark.breakdown
def test_crash_wrong_type_and_refusal_can_be_waived(
    tmp_path: Path,
) -> None:
    crash = waiver(failure="crash", bound=None)
    assert status_and_kind(run(tmp_path, "faulty:crash,on=two", crash))[0] == "waived"
    refusal = waiver(failure="rejected what is supported", bound=None)
    assert status_and_kind(run(tmp_path, "faulty:rejects,on=two", refusal))[0] == "waived"
    stated = refusal | {"rejection": "E_INVALIDARG by CreateOperator"}
    assert status_and_kind(run(tmp_path, "faulty:rejects,on=two", stated))[0] == "waived"
    other = refusal | {"rejection": "E_FAIL by Execute"}
    result = run(tmp_path, "faulty:rejects,on=two", other)
    assert status_and_kind(result) == ("stale", "fails otherwise than waived")
    wrong_type = waiver(failure="wrong data type", bound=None)
    assert status_and_kind(run(tmp_path, "faulty:wrong-type,on=two", wrong_type))[0] == "waived"


@pytest.mark.slow
def test_waivers_of_other_devices_do_not_apply(tmp_path: Path) -> None:
    # The adapter of the backend `faulty:scaled` is `scaled`.
    own = waiver(devices={"adapters": ["Scal*"]})
    assert status_and_kind(run(tmp_path, f"{SCALED},on=two", own)) == ("waived", "waiver")
    for devices in (
        {"adapters": ["Contoso*"]},
        {"directml": {"first": "0.1"}},
        {"drivers": {"last": "99.0"}},
    ):
        result = run(tmp_path, f"{SCALED},on=two", waiver(devices=devices))
        assert status_and_kind(result) == ("failed", "wrong values")


DEVICE = Environment(
    "directml",
    "1.15.4",
    "Contoso Graphics (R) 9000",
    "32.0.15.6094",
    {"vendor_id": "0x1002", "device_id": "0x73bf"},
)


@pytest.mark.parametrize(
    ("devices", "included"),
    [
        ({"adapters": ["contoso*"]}, True),
        ({"adapters": ["0x1002:*"]}, True),
        ({"adapters": ["0x10de:*", "*8000"]}, False),
        ({"drivers": {"first": "32.0.14.9", "last": "32.0.15"}}, True),
        ({"drivers": {"last": "32.0.14"}}, False),
        ({"drivers": {"first": "32.1"}}, False),
        ({"directml": {"first": "1.8.0", "last": "1.15"}}, True),
        ({"directml": {"first": "1.15.4", "last": "1.15"}}, True),
        ({"directml": {"last": "1.15.3"}}, False),
        ({"adapters": ["*9000"], "directml": {"first": "1.16.0"}}, False),
    ],
)
def test_waiver_names_devices_by_patterns_and_versions(
    tmp_path: Path, devices: dict[str, Any], included: bool
) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(json.dumps({"format": 1, "waivers": [waiver(devices=devices)]}))
    waivers = read_waivers(path).waivers
    assert bool(effective_waivers(waivers, DEVICE).waivers) is included
    recorded = {
        "backend": "directml",
        "version": DEVICE.version,
        "adapter": DEVICE.adapter,
        "driver": DEVICE.driver,
        "details": DEVICE.details,
    }
    replay = Environment("recording", "1", details={"recorded": recorded})
    assert bool(effective_waivers(waivers, replay).waivers) is included


@pytest.mark.parametrize(
    ("change", "spot", "message"),
    [
        ({"cases": ["tile/small/tow"]}, "tile/small/tow", "did you mean tile/small/two?"),
        ({"cases": ["tile/small/none*"]}, "none*", "no case matches tile/small/none*"),
        ({"cases": ["graphs/views/tile-then-multipl?"]}, "views", "no case matches graphs/views"),
        ({"cases": ["tail/small/two"]}, "tail/", "there is no case tail/small/two"),
        ({"cases": None}, "{", "waivers[0]"),
        ({"cases": []}, "cases", "cases"),
        ({"cases": ["../../etc/passwd"]}, "passwd", "an identifier of a case"),
        ({"until": "2026-02-30"}, "until", "2026-02-30 is not a date"),
        ({"until": "tomorrow"}, "until", "the last day"),
        ({"link": "somewhere"}, "link", "none yet"),
        ({"link": None}, "{", "lacks `link`"),
        ({"reason": "  "}, "reason", "what fails and why"),
        ({"bound": None}, "{", "lacks `bound`"),
        ({"bound": {"elements": 0}}, "elements", "bound.elements"),
        ({"bound": {"ulps": 3}}, "ulps", "did you mean `ulp`?"),
        ({"failure": "wrong"}, "failure", "cannot be"),
        ({"failure": "crash"}, "{", "cannot have `bound`"),
        ({"operators": ["CONVOLUTION"], "where": "GroupCont > 1"}, "GroupCont", "GroupCount?"),
        ({"where": "Zyxw > 1", "cases": None}, "Zyxw", "no operator has Zyxw"),
        ({"where": "Rank = 1", "cases": None}, "Rank", "did you mean ==?"),
        ({"where": "Repeat[0] == 1"}, "Repeat[0]", "TILE has no Repeat"),
        ({"where": "__import__('os')", "cases": None}, "__import__", "underscore"),
        ({"operators": ["TIEL"]}, "TIEL", "did you mean TILE?"),
        ({"operators": ["Conv"]}, "Conv", "no operator Conv; did you mean CONVOLUTION?"),
        ({"devices": {"drivers": {"first": "2.0", "last": "1.0"}}}, "drivers", "newer than"),
        ({"devices": {"directml": {"first": "new"}}}, "new", "a version such as"),
        ({"intermittent": "no"}, "intermittent", "true or false"),
        ({"severity": 1}, "severity", "unknown field `severity`"),
    ],
)
def test_wrong_waiver_file_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, Any], spot: str, message: str
) -> None:
    """The mistake is in the first line with `spot`; `{` stands for the beginning of the waiver."""
    result = run(tmp_path, "numpy", waiver(**change))
    lines = (tmp_path / "w.yaml").read_text().splitlines()
    first = 3 if spot == "{" else 1
    line = next(n for n, text in enumerate(lines, 1) if n >= first and spot in text)
    assert result["code"] == 3
    assert f"w.yaml:{line}:" in result["output"]
    assert message in result["output"]


def test_two_waivers_with_the_same_name_are_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "numpy", waiver(), waiver())
    assert result["code"] == 3
    assert "a-tenth-off is listed twice" in result["output"]


def test_waivers_may_name_bundled_cases_that_do_not_run(tmp_path: Path) -> None:
    bundled = waiver(cases=["gather/documented/example-1-1d-remapping"])
    result = run(tmp_path, "numpy", bundled)
    assert result["code"] == 0


def test_file_that_is_no_waiver_file_is_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "format: 2\nwaivers: []", "format: 1\nwaivers: {}", "\x00"):
        (tmp_path / "w.yaml").write_text(text)
        with pytest.raises(InvalidFilesError):
            read_waivers(tmp_path / "w.yaml")


def test_range_of_versions_includes_its_ends() -> None:
    versions = VersionRange((1, 8), (1, 15))
    inside = ("1.8.0", "1.8", "1.15.4", "1.15")
    assert all(versions.holds(parse_version(text) or ()) for text in inside)
    assert not any(versions.holds(parse_version(text) or ()) for text in ("1.7.9", "1.16.0", "2"))


@pytest.mark.parametrize("text", ["", "1.", "1.x", "-1.2", "\u0661.15", "9" * 5000])
def test_text_that_is_no_version_is_not_parsed(text: str) -> None:
    assert parse_version(text) is None


def with_reasons(text: str) -> str:
    return text.replace(UNEXPLAINED, "The driver scales.")


@pytest.mark.parametrize(
    "fault",
    [
        *("scaled", "zeros", "rejects", "wrong-type", "error"),
        pytest.param("crash", marks=pytest.mark.breakdown),
    ],
)
def test_drafted_waivers_waive_the_failures_of_the_log(tmp_path: Path, fault: str) -> None:
    backend = f"faulty:{fault}"
    run(tmp_path, backend, waiver(**NO_CASE), log="log.jsonl")
    done = dmlconf_here(tmp_path, "waive", "log.jsonl", "-o", "first.yaml", "--until", "2099-01-01")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith(
        "then type:\n  dmlconf run --failed log.jsonl --waivers first.yaml\n"
    )
    command = ("run", "tile", "-b", backend, "--waivers", "first.yaml", "-q")
    unexplained = dmlconf_here(tmp_path, *command)
    assert unexplained.returncode == 3
    assert "in place of the TODO" in unexplained.stderr
    text = (tmp_path / "first.yaml").read_text("utf-8")
    (tmp_path / "first.yaml").write_text(with_reasons(text), "utf-8")
    again = dmlconf_here(tmp_path, *command)
    assert again.returncode == 0
    # Some faults also fail the case that a backend must reject.
    expected = 4 if fault in ("crash", "error", "zeros") else 3
    assert f"{expected} waived" in again.stdout
    assert "failed" not in again.stdout


def test_drafted_waivers_apply_only_to_their_device(tmp_path: Path) -> None:
    run(tmp_path, SCALED, waiver(**NO_CASE), log="log.jsonl")
    done = dmlconf_here(tmp_path, "waive", "log.jsonl", "--link", "https://bugs.example.com/2")
    (tmp_path / "first.yaml").write_text(done.stdout)
    with pytest.raises(InvalidFilesError, match="excuses failures for no reason yet"):
        read_waivers(tmp_path / "first.yaml")
    (tmp_path / "first.yaml").write_text(with_reasons(done.stdout))
    [only] = read_waivers(tmp_path / "first.yaml").waivers
    for adapter, applies in (("scaled", True), ("another", False)):
        device = Environment("faulty", "1", adapter)
        assert bool(effective_waivers((only,), device).waivers) is applies
    assert only.link == "https://bugs.example.com/2"
    assert only.reason.startswith("The driver scales.")


def test_waive_drafts_a_waiver_of_one_case(tmp_path: Path) -> None:
    run(tmp_path, SCALED, waiver(**NO_CASE), log="log.jsonl")
    log = read_log(tmp_path / "log.jsonl")
    first, *others = [each.case for each in log.verdicts if each.status == "failed"]
    assert others
    for name in (first, longest_handle(first)[:5]):
        done = dmlconf_here(tmp_path, "waive", "log.jsonl", "--case", name)
        assert done.returncode == 0, done.stderr
        assert [each["cases"] for each in yaml.safe_load(done.stdout)["waivers"]] == [[first]]
    done = dmlconf_here(tmp_path, "waive", "log.jsonl", "--case", "tile/none")
    assert done.returncode == 2
    assert "no such case failed" in done.stderr
    done = dmlconf_here(tmp_path, "waive", "log.jsonl", "--case", f"{first}x")
    assert f"no such case failed in the run; did you mean {first}?" in done.stderr


def test_waive_refuses_a_last_day_that_has_passed(tmp_path: Path) -> None:
    run(tmp_path, SCALED, waiver(**NO_CASE), log="wrong.jsonl")
    done = dmlconf_here(tmp_path, "waive", "wrong.jsonl", "-o", "w2.yaml", "--until", "2020-01-01")
    assert done.returncode == 2
    assert "'--until': 2020-01-01 has passed, so the waivers would hold in no run" in done.stderr
    assert not (tmp_path / "w2.yaml").exists()


def test_waive_reports_no_failures_and_replaces_no_file(tmp_path: Path) -> None:
    run(tmp_path, "numpy", waiver(**NO_CASE), log="right.jsonl")
    done = dmlconf_here(tmp_path, "waive", "right.jsonl", "-o", "none.yaml")
    assert done.returncode == 5
    assert "nothing failed or broke" in done.stderr
    assert not (tmp_path / "none.yaml").exists()
    run(tmp_path, SCALED, waiver(**NO_CASE), log="wrong.jsonl")
    before = (tmp_path / "w.yaml").read_text()
    done = dmlconf_here(tmp_path, "waive", "wrong.jsonl", "-o", "w.yaml")
    assert done.returncode == 2
    assert "--output w.yaml: it exists already; remove it or choose another name" in done.stderr
    assert (tmp_path / "w.yaml").read_text() == before
