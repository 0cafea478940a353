"""A failure of a device, a process or DirectML breaks one case, and is reported with its reason.

The tested code is in `dmlconf/workers/pool.py`, `dmlconf/workers/worker.py`,
`dmlconf/workers/memory.py`, `dmlconf/backends/directml/devices/device.py`,
`dmlconf/backends/directml/devices/fence.py`, `dmlconf/backends/directml/api/library.py`,
`dmlconf/backends/directml/api/vtable.py`,
`dmlconf/backends/process_end.py` and `dmlconf/backends/directml/dispatch/outcomes.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, Provenance
from dmlconf.excuses.known_fault_file import read_known_faults
from dmlconf.excuses.known_faults import KnownFaults
from dmlconf.resources import cases_directory
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.backends.installing import install_plugin
from tests.lab.running import lab

pytestmark = pytest.mark.lab

HERE: Final = Path(__file__).parent

FINE: Final = """
  - name: {name}
    desc:
      InputTensor: {{Sizes: [2], DataType: FLOAT32, values: [1, 2]}}
      OutputTensor: {{Sizes: [4], DataType: FLOAT32}}
      Repeats: [2]
    expect: {{OutputTensor: [1, 2, 1, 2]}}
"""

NO_REPEATS: Final = """
  - name: trouble
    desc:
      InputTensor: {Sizes: [2, 3], DataType: FLOAT32}
      OutputTensor: {Sizes: [2, 6], DataType: FLOAT32}
      Repeats: null
      RepeatsCount: 2
    expect: {rejected: E_INVALIDARG, constraint: one-repeat-per-dimension}
"""
LARGER_THAN_MEMORY: Final = """
  - name: trouble
    desc:
      InputTensor:
        {Sizes: [1, 2], DataType: FLOAT64, Strides: [1, 4294967290], values: [1, 2]}
      OutputTensor: {Sizes: [1, 2], DataType: FLOAT64}
      Repeats: [1, 1]
    expect: {OutputTensor: [1, 2]}
"""


HUNG: Final = """
from pathlib import Path
from saboteur import create
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite

backend = create("block_queue,trouble")
backend.limit_waits(2)
for planned in load_suite([Path("tile.yaml")]).plan():
    for outcome in backend.run([build(planned)]):
        kind = getattr(outcome, "kind", None)
        print(f"{kind}: {outcome.message}" if kind else type(outcome).__name__)
backend.close()
print("closed")
"""


def write_suite(directory: Path, trouble: str) -> None:
    """Write a case file with the case `trouble` between four others."""
    around = [FINE.format(name=f"fine-{number}") for number in range(4)]
    text = "".join(("operator: TILE\ncases:", *around[:2], trouble, *around[2:]))
    (directory / "tile.yaml").write_text(text, encoding="utf-8")


def verdicts(directory: Path) -> Mapping[str, Verdict]:
    """Return the log's verdicts by the names of their cases; the log must be complete."""
    log = read_log(directory / "run.jsonl")
    assert log.complete
    result = {verdict.case.rpartition("/")[2]: verdict for verdict in log.verdicts}
    assert len(result) == len(log.verdicts) == log.header.selected
    return result


def only_trouble(directory: Path) -> Verdict:
    """Return the verdict on the case `trouble`; all others must have passed."""
    result = dict(verdicts(directory))
    trouble = result.pop("trouble")
    assert [str(verdict.status) for verdict in result.values()] == ["passed"] * 4
    return trouble


def run_sabotaged(directory: Path, sabotage: str, *arguments: str) -> Verdict:
    """Run five cases with a sabotage before `trouble`; return the verdict on `trouble`."""
    write_suite(directory, FINE.format(name="trouble"))
    shutil.copy(HERE / "saboteur" / "saboteur.py", directory)
    install_plugin(directory, "saboteur")
    # With -m, Python finds the plugin in the current directory.
    done = lab(
        "python",
        "--",
        "-m",
        "dmlconf",
        "run",
        "tile.yaml",
        "-b",
        f"saboteur:{sabotage},trouble",
        "--log",
        "run.jsonl",
        *arguments,
        cwd=directory,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return only_trouble(directory)


def run_on_directml(directory: Path, trouble: str, exit_code: int = 1) -> Verdict:
    write_suite(directory, trouble)
    arguments = ("tile.yaml", "-b", "directml", "--log", "run.jsonl")
    done = lab("run", "--", "run", *arguments, cwd=directory)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return only_trouble(directory)


def reason(verdict: Verdict) -> tuple[Status, ReasonKind, str]:
    assert verdict.reason is not None
    return verdict.status, verdict.reason.kind, verdict.reason.message


def test_a_removed_device_breaks_only_one_case(tmp_path: Path) -> None:
    status, kind, message = reason(run_sabotaged(tmp_path, "remove_device"))
    assert (status, kind) == (Status.BROKEN, ReasonKind.DEVICE_REMOVED)
    assert message.startswith("the device was removed: GetDeviceRemovedReason: DXGI_ERROR_")


def test_a_dispatch_that_never_ends_breaks_only_one_case(tmp_path: Path) -> None:
    actual = reason(run_sabotaged(tmp_path, "block_queue", "--timeout", "5"))
    # The worker waits for nine tenths of --timeout.
    hung = "the device did not finish its work within 4.5 seconds"
    assert actual == (Status.BROKEN, ReasonKind.HANG, hung)


def test_a_process_that_never_answers_breaks_only_one_case(tmp_path: Path) -> None:
    actual = reason(run_sabotaged(tmp_path, "sleep_for_hours", "--timeout", "5"))
    ended = "no result after 5 seconds, so its process was ended"
    assert actual == (Status.BROKEN, ReasonKind.HANG, ended)


def test_a_backend_whose_device_hangs_can_be_closed(tmp_path: Path) -> None:
    shutil.copy(HERE / "saboteur" / "saboteur.py", tmp_path)
    write_suite(tmp_path, FINE.format(name="trouble"))
    (tmp_path / "script.py").write_text(HUNG, encoding="utf-8")
    done = lab("python", "--", "script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = ["Outputs"] * 2 + ["hang: the device did not finish its work within 2 seconds"] * 3
    assert done.stdout.splitlines() == [*outcomes, "closed"]


def test_a_thread_that_crashes_breaks_only_one_case(tmp_path: Path) -> None:
    verdict = run_sabotaged(tmp_path, "jump_nowhere")
    died = "its process died of exception 0xc0000005"
    assert reason(verdict) == (Status.BROKEN, ReasonKind.CRASH, died)
    assert verdict.reason is not None
    assert "about to jump" in verdict.reason.diagnostics


def test_a_desc_that_crashes_directml_breaks_only_one_case(tmp_path: Path) -> None:
    verdict = run_on_directml(tmp_path, NO_REPEATS)
    died = "its process died of exception 0xc0000005"
    assert reason(verdict) == (Status.BROKEN, ReasonKind.CRASH, died)
    assert verdict.reason is not None
    assert "CreateOperator: exception: access violation" in verdict.reason.diagnostics
    assert "tile/trouble" in verdict.reason.diagnostics


def test_a_tensor_larger_than_the_memory_is_unsupported(tmp_path: Path) -> None:
    status, kind, message = reason(run_on_directml(tmp_path, LARGER_THAN_MEMORY, 0))
    assert (status, kind) == (Status.UNSUPPORTED, ReasonKind.MEMORY)
    # Four copies of some 2^32 elements of 8 bytes.
    assert message.startswith("needs up to 128.0 GiB of memory, and this machine has")


def test_every_invalid_desc_is_rejected_or_waived(tmp_path: Path) -> None:
    arguments = ("-b", "directml", "--tag", "invalid", "--log", "run.jsonl", "-q")
    done = lab("run", "--", "run", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    actual = {verdict.case: verdict for verdict in read_log(tmp_path / "run.jsonl").verdicts}
    plan = [
        case for case in load_suite([cases_directory()]).plan() if "invalid" in case.template.tags
    ]
    assert {case.identifier for case in plan} == actual.keys()
    own = {Provenance.DOCUMENTED, Provenance.RECORDED}
    wrong = {
        name: verdict.status
        for name, verdict in actual.items()
        if verdict.status is not Status.PASSED or verdict.expectation not in own
    }
    directml = KnownFaults(
        "1.15.4", tuple(fault for fault in read_known_faults() if fault.last >= (1, 15, 4))
    )
    known = {case.identifier for case in plan if has_a_fault(directml, build(case))}
    assert set(wrong.values()) == {Status.WAIVED}
    assert wrong.keys() <= known


def has_a_fault(directml: KnownFaults, case: Case) -> bool:
    """Return whether a case has a known fault outside of graphs and circumstances."""
    faults = (fault for fault in directml.faults if fault.circumstance is None and not fault.graph)
    return any(fault.concerns(case) for fault in faults)


RUN_DIRECTML: Final = ("run", "tile.yaml", "-b", "directml")
D3D12: Final = r"C:\windows\system32\d3d12.dll"


@pytest.mark.parametrize(
    ("command", "file", "expected"),
    [
        (RUN_DIRECTML, D3D12, f"{D3D12} lacks the function DMLCreateDevice1: it is not DirectML"),
        (("devices",), D3D12, f"{D3D12} lacks the function DMLCreateDevice1: it is not DirectML"),
        (RUN_DIRECTML, "text.dll", r"Z:\here\text.dll cannot be loaded as DirectML"),
        (RUN_DIRECTML, "missing.dll", "missing.dll (no such file)"),
    ],
    ids=["another-dll", "another-dll-devices", "text", "missing"],
)
def test_a_file_that_is_not_directml_gives_exit_code_4(
    tmp_path: Path, command: tuple[str, ...], file: str, expected: str
) -> None:
    (tmp_path / "text.dll").write_text("not a library", encoding="utf-8")
    write_suite(tmp_path, FINE.format(name="trouble"))
    done = lab("run", "--", *command, "--directml", file, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert expected in done.stderr
    assert 'pip install ".[directml]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_workers_use_the_directml_that_the_option_names(tmp_path: Path) -> None:
    write_suite(tmp_path, FINE.format(name="trouble"))
    code = "import os, shutil; shutil.copy(os.environ['DMLCONF_DIRECTML'], 'Mine.dll')"
    assert lab("python", "--", "-c", code, cwd=tmp_path).returncode == 0
    arguments = ("tile.yaml", "-b", "directml", "--directml", "Mine.dll", "-j", "2")
    done = lab("run", "--", "run", *arguments, "--log", "run.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    details = read_log(tmp_path / "run.jsonl").header.environment["details"]
    assert details["directml_file"] == "Mine.dll"
    assert details["directml_origin"] == "the option path"
