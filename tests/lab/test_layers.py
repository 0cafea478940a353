"""In the lab, dmlconf finds the mistake of a faulty layer between itself and DirectML.

The faulty layers are in `tests/lab/layers/layer.py`.

The tested code is in `dmlconf/backends/directml/devices/messages.py`,
`dmlconf/backends/directml/device_checks.py`, `dmlconf/backends/directml/backend.py`,
`dmlconf/engine/variants.py`, `dmlconf/comparison/timing.py` and `dmlconf/reports/runs/remarks.py`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from dmlconf.run_log.log import RunLog, read_log
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.lab.running import lab

pytestmark = pytest.mark.lab

LAYER: Final = Path(__file__).parent / "layers" / "layer.py"
ADD: Final = ("-o", "ELEMENT_WISE_ADD", "-k", "boundary and int")
"""Options that select eight cases."""


def run(directory: Path, layer: str, *arguments: str, exit_code: int = 1) -> RunLog:
    shutil.copy(LAYER, directory)
    done = lab(
        "python",
        "--",
        "layer.py",
        layer,
        "run",
        *arguments,
        "--log",
        "run.jsonl",
        "-q",
        cwd=directory,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return read_log(directory / "run.jsonl")


@pytest.mark.parametrize(
    ("layer", "option", "wrong", "right"),
    [
        ("wrong_metacommand", "metacommands", "on", "off"),
        pytest.param("wrong_half", "half", "on", "off", marks=pytest.mark.saboteurs),
        pytest.param("wrong_graph", "compile", "graph", "operator", marks=pytest.mark.saboteurs),
    ],
)
def test_the_wrong_variant_is_named_and_no_other(
    layer: str, option: str, wrong: str, right: str, tmp_path: Path
) -> None:
    log = run(tmp_path, layer, *ADD, "-b", f"directml:{option}=both")
    assert log.header.environment["details"][option] == "both"
    assert len(log.verdicts) == 8
    for verdict in log.verdicts:
        assert verdict.judgement.variants[f"{option}={wrong}"].status is Status.FAILED
        assert verdict.judgement.variants[f"{option}={right}"].status is Status.PASSED
        assert verdict.reason is not None
        assert verdict.reason.message.startswith(f"only with {option}={wrong}: ")


@pytest.mark.saboteurs
def test_four_variants_of_real_directml_agree_in_every_bit(tmp_path: Path) -> None:
    done = lab(
        "run",
        "--",
        "run",
        *ADD,
        "-b",
        "directml:metacommands=both,compile=both",
        "--log",
        "run.jsonl",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = read_log(tmp_path / "run.jsonl").verdicts
    assert len(verdicts) == 8
    assert all(len(verdict.judgement.variants) == 4 for verdict in verdicts)
    assert not any(
        result.differing_bits
        for verdict in verdicts
        for result in verdict.judgement.variants.values()
    )


def test_an_error_of_a_debug_layer_fails_its_case(tmp_path: Path) -> None:
    operators = [f"ELEMENT_WISE_{name}" for name in ("ADD", "MULTIPLY", "SUBTRACT")]
    chosen = [word for name in operators for word in ("-o", name)]
    chosen += ["-k", "(int8-wraps or one-element-longer) and not graphs"]
    log = run(tmp_path, "DebugLayer", *chosen, "-b", "directml:debug=on")
    ran = [verdict for verdict in log.verdicts if "/invalid/" not in verdict.case]
    refused = [verdict for verdict in log.verdicts if "/invalid/" in verdict.case]
    assert ran
    assert refused
    for verdict in ran:
        error = "ERROR #1001: a buffer is in the wrong state"
        warnings = ("WARNING #1002: a barrier is superfluous",)
        if "ADD" in verdict.operator:
            assert verdict.reason is not None
            assert verdict.reason.kind is ReasonKind.ERROR_MESSAGE
            assert verdict.reason.message == error
        else:
            assert verdict.status is Status.PASSED
        assert verdict.execution.warnings == (warnings if "SUBTRACT" in verdict.operator else ())
    # An error message about a rejected desc is no fault.
    assert {verdict.status for verdict in refused} == {Status.PASSED}


def test_missing_debug_layers_are_reported_once(tmp_path: Path) -> None:
    done = lab(
        "run",
        "--",
        "run",
        "-o",
        "TILE",
        "--tag",
        "documented",
        "-b",
        "directml:debug=on",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("debug layers that are not there, so no message was read:") == 1
    assert "DirectML.Debug.dll" in done.stdout


@pytest.mark.saboteurs
def test_an_operator_that_became_slow_is_named(tmp_path: Path) -> None:
    operators = "ADD SUBTRACT MULTIPLY MAX MIN ABS NEGATE SIGN IDENTITY BIT_AND BIT_OR BIT_XOR"
    chosen = [word for name in operators.split() for word in ("-o", f"ELEMENT_WISE_{name}")]
    chosen += ["--tag", "boundary", "-k", "int and not graphs", "-b", "directml"]
    done = lab("run", "--", "run", *chosen, "-q", "--log", "base.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copy(LAYER, tmp_path)
    done = lab(
        "python",
        "--",
        "layer.py",
        "SlowAdd",
        "run",
        *chosen,
        "-q",
        "--log",
        "run.jsonl",
        "--slower-than",
        "base.jsonl",
        "--fail-slower",
        "2x",
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "PASSED" in done.stdout
    assert "Error: --fail-slower 2x: ELEMENT_WISE_ADD takes" in done.stderr
    assert done.stderr.count("times as long, at least") == 1


def checks(directory: Path, layer: str = "") -> tuple[int, Mapping[str, tuple[str, str]]]:
    """Return the exit code of `devices --check`, and the status and message of each check."""
    shutil.copy(LAYER, directory)
    command = ("python", "--", "layer.py", layer) if layer else ("run", "--")
    done = lab(*command, "devices", "--check", "--json", cwd=directory)
    [adapter] = json.loads(done.stdout)["adapters"]
    results = {each["name"]: (each["status"], each["message"]) for each in adapter["checks"]}
    return done.returncode, results


def test_checks_of_real_directml_pass(tmp_path: Path) -> None:
    code, results = checks(tmp_path)
    assert code == 0
    assert {status for status, _ in results.values()} == {"passed"}
    assert len(results) == 7  # All checks of `devices --check`.


@pytest.mark.saboteurs
@pytest.mark.parametrize(
    ("layer", "check", "message"),
    [
        ("wrong_level", "minimum feature levels", "a device of 6_3 accepts the minimum 6_4"),
        ("leaking", "made and released 100 times", "references to the ID3D12Device"),
    ],
)
def test_a_mistake_of_a_device_fails_only_its_check(
    layer: str, check: str, message: str, tmp_path: Path
) -> None:
    code, results = checks(tmp_path, layer)
    assert code == 1
    assert results[check][0] == "failed"
    assert message in results[check][1]
    assert [name for name, (status, _) in results.items() if status != "passed"] == [check]
