"""`dmlconf devices --check` shows the results of checks, and fails if a check fails.

Adapters are simulated here; tests/lab runs real checks.

The tested code is in `dmlconf/cli/pages/device_checks.py`,
`dmlconf/cli/commands/running/devices.py` and `dmlconf/backends/directml/check_processes.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from click.testing import CliRunner

from dmlconf.backends.check_results import Checked, CheckResult, CheckStatus, DeviceChecks, OnResult
from dmlconf.backends.directml import check_processes
from dmlconf.backends.directml.device_checks import CHECKS
from dmlconf.backends.survey import Survey, Surveyed
from dmlconf.cases.model import Case
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.entry_point import cli
from tests.cli.devices.test_devices import ARC, FILE, WARP

PASSED = CheckResult("data types", CheckStatus.PASSED, "13 of 13 data types", 0.5)


def simulate_checks(monkeypatch: pytest.MonkeyPatch, *results: CheckResult) -> list[Case]:
    """Simulate results of an adapter's checks; return the cases that the checks get."""
    given: list[Case] = []

    def check(
        path: str | None,
        cases: Sequence[Case],
        on_result: OnResult,
    ) -> DeviceChecks:
        given.extend(cases)
        for result in results:
            on_result(ARC.index, ARC.description, result)
        return DeviceChecks(FILE, (Checked(ARC, results),))

    monkeypatch.setattr(check_processes, "check_devices", check)
    return given


def test_check_results_are_listed_by_adapter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unsupported = CheckResult("after a removal", CheckStatus.UNSUPPORTED, "it cannot be removed")
    given = simulate_checks(monkeypatch, PASSED, unsupported)
    done = CliRunner().invoke(
        cli, ["devices", "--check", "--color", "never"], standalone_mode=False
    )
    assert done.output.splitlines() == [
        "0  Intel Arc",
        "   PASSED      data types: 13 of 13 data types",
        "   UNSUPPORTED after a removal: it cannot be removed",
        "PASSED: 1 passed, 1 unsupported",
    ]
    assert done.return_value == ExitCode.SUCCESS
    assert [case.operator_name for case in given] == ["ELEMENT_WISE_IDENTITY"] * 2
    assert {str(case.lowest_level) for case in given} == {"1_0"}


@pytest.mark.parametrize("status", [CheckStatus.FAILED, CheckStatus.BROKEN])
def test_a_check_that_fails_or_breaks_fails_the_command(
    status: CheckStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate_checks(monkeypatch, PASSED, CheckResult("feature queries", status, "wrong"))
    done = CliRunner().invoke(cli, ["devices", "--check", "--json"], standalone_mode=False)
    assert done.return_value == ExitCode.FAILED
    [adapter] = json.loads(done.output)["adapters"]
    assert [each["status"] for each in adapter["checks"]] == ["passed", str(status)]


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        ("D3D12CreateDevice: DXGI_ERROR_UNSUPPORTED", CheckStatus.UNSUPPORTED),
        ("while opening it, the process died of SIGSEGV", CheckStatus.BROKEN),
    ],
)
def test_checks_of_an_unopened_adapter_have_one_status(
    refusal: str, status: CheckStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = Survey(FILE, (Surveyed(WARP, None, refusal),))
    monkeypatch.setattr(check_processes, "survey", lambda path: actual)
    [checked] = check_processes.check_devices(None, ()).adapters
    assert {result.status for result in checked.results} == {status}
    assert [result.name for result in checked.results] == list(CHECKS)
