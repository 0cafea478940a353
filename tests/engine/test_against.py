"""`--against` gives expected outcomes, chosen so that no backend is judged by its own results.

The tested code is in `dmlconf/engine/against.py`, `dmlconf/backends/errors.py`,
`dmlconf/backends/recording/store.py`, `dmlconf/backends/recording/file.py` and
`dmlconf/cases/loading/discovery.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.backends import registry
from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import BackendError, Outcome, Outputs, Rejection
from dmlconf.backends.recording.digest import case_digest
from dmlconf.backends.recording.file import recording_bytes
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, Provenance
from dmlconf.engine.against import AUTO, Expectations, expectations, suite_recordings
from dmlconf.engine.session import OpenBackend, open_backend
from dmlconf.judging.judge import Recorded, judge
from dmlconf.verdicts.verdict import ReasonKind, Status
from dmlconf.workers.execution import Limits
from tests.backends.recordings import ENVIRONMENT, recording
from tests.engine.cases import plan, write

STALE_DIGEST = "0" * 64

REFERENCE_ENVIRONMENT: dict[str, Any] = {
    "backend": "numpy",
    "version": "1.0",
    "adapter": None,
    "driver": None,
}

IDENTITY = """
operator: ELEMENT_WISE_IDENTITY
cases:
  - name: unstated
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [2], DataType: FLOAT32}
"""
"""A case that states no outputs."""


@contextmanager
def opened_backend(backend: str) -> Iterator[OpenBackend]:
    result = open_backend(registry.parse(backend), Limits())
    try:
        yield result
    finally:
        result.close()


def unstated(directory: Path) -> Case:
    return build(plan(directory, "unstated")[0])


def write_recording(
    path: Path, case: Case, outcome: Outcome | None = None, digest: str = "", **environment: Any
) -> Path:
    """Write a recording of one case, by default as if DirectML gave the reference's outcome."""
    outcome = outcome or run_case(case)
    assert isinstance(outcome, Outputs | Rejection)
    digests = {case.identifier: digest or case_digest(case)}
    result = recording({case.identifier: outcome}, digests, **environment)
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(recording_bytes(result))
    return path


def chosen(
    directory: Path, source: str, backend: str = "numpy", names: tuple[str, ...] = ("unstated",)
) -> Expectations:
    """Return what `--against SOURCE` chooses for a run of these cases on a backend."""
    suite = load_suite([write(directory)])
    with opened_backend(backend) as tested:
        return expectations(source, tested, suite, plan(directory, *names), [directory])


def test_recording_of_directml_gives_recorded_expectations(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    path = write_recording(tmp_path / "x.dmlrec", case)
    actual = chosen(tmp_path, f"recording:{path}").against(case)
    assert isinstance(actual, Recorded)
    verdict = judge(case, run_case(case), lambda case: actual)
    assert (verdict.status, verdict.expectation) == (Status.PASSED, Provenance.RECORDED)


def test_recorded_rejection_is_the_expected_outcome(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    path = write_recording(tmp_path / "x.dmlrec", case, Rejection("CreateOperator", "E_INVALIDARG"))
    against = chosen(tmp_path, f"recording:{path}").against
    verdict = judge(case, run_case(case), against)
    assert (verdict.status, verdict.expectation) == (Status.FAILED, Provenance.RECORDED)
    refused = judge(case, Rejection("CreateOperator", "E_INVALIDARG"), against)
    assert refused.status is Status.PASSED


@pytest.mark.parametrize("hresult", ["E_FAIL", "E_OUTOFMEMORY", "DXGI_ERROR_UNSUPPORTED"])
def test_recorded_device_failure_is_no_expected_outcome(tmp_path: Path, hresult: str) -> None:
    case = unstated(tmp_path)
    path = write_recording(tmp_path / "x.dmlrec", case, Rejection("CompileOperator", hresult))
    assert chosen(tmp_path, f"recording:{path}").against(case) is None


def test_unrecorded_case_has_no_expected_outcome(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "x.dmlrec", unstated(tmp_path))
    stated = build(plan(tmp_path, "stated")[0])
    expected = chosen(tmp_path, f"recording:{path}", names=("stated", "unstated"))
    assert expected.against(stated) is None
    assert expected.note is None


def test_recording_with_a_stale_case_is_refused(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    path = write_recording(tmp_path / "x.dmlrec", case, digest=STALE_DIGEST)
    with pytest.raises(BackendError) as caught:
        chosen(tmp_path, f"recording:{path}")
    message = str(caught.value)
    assert f"\n  {case.identifier}\n" in message
    assert f"dmlconf record {tmp_path} -b directml -o {path}" in message


def test_recording_of_another_suite_is_refused(tmp_path: Path) -> None:
    case = replace(unstated(tmp_path), identifier="tile/another/case")
    path = write_recording(tmp_path / "x.dmlrec", case)
    with pytest.raises(BackendError, match=r"another suite: it has none of the 1 selected case$"):
        chosen(tmp_path, f"recording:{path}", names=("stated",))


def test_recording_of_other_cases_of_the_suite_is_accepted(
    tmp_path: Path,
) -> None:
    path = write_recording(tmp_path / "x.dmlrec", unstated(tmp_path))
    expected = chosen(tmp_path, f"recording:{path}", names=("stated",))
    assert expected.against(build(plan(tmp_path, "stated")[0])) is None


def test_recording_of_other_operators_gives_only_a_note(
    tmp_path: Path,
) -> None:
    write_recording(tmp_path / "tile" / "x.dmlrec", unstated(tmp_path))
    suite = load_suite([write(tmp_path), write(tmp_path, IDENTITY, "identity.yaml")])
    identities = [each for each in suite.plan() if "identity" in each.identifier]
    path = tmp_path / "x.dmlrec"
    with opened_backend("numpy") as tested:
        expected = expectations(f"recording:{path}", tested, suite, identities, [tmp_path])
    assert expected.against(build(identities[0])) is None
    assert str(expected.note).startswith(f"{path} has no recording of the selected operators")


def test_recording_of_the_reference_never_judges_the_reference(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    path = write_recording(tmp_path / "x.dmlrec", case, **REFERENCE_ENVIRONMENT)
    expected = chosen(tmp_path, f"recording:{path}")
    assert expected.against(case) is None
    assert "proves nothing" in str(expected.note)


def test_the_reference_never_judges_a_recording_of_itself(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    path = write_recording(tmp_path / "x.dmlrec", case, **REFERENCE_ENVIRONMENT)
    for given in ("numpy", AUTO):
        assert chosen(tmp_path, given, f"recording:{path}").against(case) is None


def test_recording_of_the_reference_counts_as_the_reference(
    tmp_path: Path,
) -> None:
    case = unstated(tmp_path)
    path = write_recording(tmp_path / "x.dmlrec", case, **REFERENCE_ENVIRONMENT)
    verdict = judge(
        case, run_case(case), chosen(tmp_path, f"recording:{path}", "faulty:zeros").against
    )
    assert (verdict.status, verdict.expectation) == (Status.PASSED, Provenance.REFERENCE)


def test_recording_of_the_tested_device_never_judges_it(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    first = write_recording(tmp_path / "one.dmlrec", case)
    # It is the same device, with a further detail and on another platform.
    same = write_recording(
        tmp_path / "same.dmlrec",
        case,
        details={**ENVIRONMENT["details"], "other": 1},
        platform="another",
    )
    assert chosen(tmp_path, f"recording:{same}", f"recording:{first}").against(case) is None


@pytest.mark.parametrize(
    "other",
    [
        {"driver": "32.0"},
        {"adapter": "Another"},
        {"version": "1.16"},
        {"details": {"directml_sha256": "2" * 64}},
    ],
)
def test_recording_of_another_device_gives_expected_outcomes(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    case = unstated(tmp_path)
    first = write_recording(tmp_path / "one.dmlrec", case)
    second = write_recording(tmp_path / "two.dmlrec", case, **other)
    actual = chosen(tmp_path, f"recording:{second}", f"recording:{first}").against(case)
    assert isinstance(actual, Recorded)


def test_auto_uses_the_reference_for_unrecorded_cases(
    tmp_path: Path,
) -> None:
    case = unstated(tmp_path)
    # TILE of [1, 2] is [1, 2, 1, 2], so the recording contradicts the reference.
    recorded = Outputs({"OutputTensor": np.array([2, 4, 2, 4], np.float32)})
    path = write_recording(tmp_path / "recordings" / "x.dmlrec", case, recorded)
    expected = chosen(tmp_path, AUTO, "faulty:zeros")
    assert expected.name == f"recording:{path}, else numpy"
    verdict = judge(case, recorded, expected.against)
    assert (verdict.status, verdict.expectation) == (Status.FAILED, Provenance.RECORDED)
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.CONTRADICTION
    unrecorded = build(plan(tmp_path, "stated")[0])
    assert isinstance(expected.against(unrecorded), Outputs)


def test_auto_judges_the_reference_only_by_recordings(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    path = write_recording(tmp_path / "recordings" / "x.dmlrec", case)
    expected = chosen(tmp_path, AUTO)
    assert expected.name == f"recording:{path}"
    assert isinstance(expected.against(case), Recorded)
    assert expected.against(build(plan(tmp_path, "stated")[0])) is None


def test_auto_without_recordings_uses_the_reference(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    assert chosen(tmp_path, AUTO).name == "numpy"
    assert chosen(tmp_path, AUTO).against(case) is None
    assert isinstance(chosen(tmp_path, AUTO, "faulty:zeros").against(case), Outputs)


def test_auto_ignores_recordings_of_the_tested_backend(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    write_recording(tmp_path / "recordings" / "a.dmlrec", case, **REFERENCE_ENVIRONMENT)
    path = write_recording(tmp_path / "recordings" / "b.dmlrec", case)
    assert chosen(tmp_path, AUTO).name == f"recording:{path}"
    assert [each.path for each in chosen(tmp_path, AUTO).recordings] == [path]
    of_replay = chosen(tmp_path, AUTO, f"recording:{path}")
    assert [each.path for each in of_replay.recordings] == [tmp_path / "recordings" / "a.dmlrec"]


def test_auto_notes_a_stale_case_and_uses_the_reference(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    path = write_recording(tmp_path / "recordings" / "x.dmlrec", case, digest=STALE_DIGEST)
    expected = chosen(tmp_path, AUTO)
    assert expected.recordings[0].stale_note([]) is None
    assert judge(case, run_case(case), expected.against).status is Status.UNCHECKED
    note = str(expected.recordings[0].stale_note([]))
    assert "for 1 case and" in note
    assert case.identifier in note
    assert f"dmlconf record {tmp_path} -b directml -o {path}" in note
    other = chosen(tmp_path, AUTO, "faulty:zeros")
    verdict = judge(case, run_case(case), other.against)
    assert (verdict.status, verdict.expectation) == (Status.PASSED, Provenance.REFERENCE)


def test_stale_case_that_runs_twice_is_noted_once(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    write_recording(tmp_path / "recordings" / "x.dmlrec", case, digest=STALE_DIGEST)
    expected = chosen(tmp_path, AUTO)
    for _ in range(2):
        expected.against(case)
    note = str(expected.recordings[0].stale_note([]))
    assert "for 1 case and" in note
    assert note.count(case.identifier) == 1


def test_auto_reports_a_damaged_recording_of_the_suite(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "recordings" / "x.dmlrec", unstated(tmp_path))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(BackendError, match="a damaged one"):
        chosen(tmp_path, AUTO)


def test_recordings_are_found_from_parts_of_a_suite(
    tmp_path: Path,
) -> None:
    (tmp_path / "cases" / "tile").mkdir(parents=True)
    (tmp_path / "cases" / "recordings").mkdir()
    path = tmp_path / "cases" / "recordings" / "x.dmlrec"
    path.touch()
    (path.parent / "notes.txt").touch()
    part = write(tmp_path / "cases" / "tile")
    for given in (tmp_path / "cases", tmp_path / "cases" / "tile", part):
        assert suite_recordings([given]) == [path]
    assert suite_recordings([part, tmp_path / "cases"]) == [path]
    assert suite_recordings([tmp_path]) == []


def test_recordings_by_operator_are_found_from_parts(
    tmp_path: Path,
) -> None:
    suite = tmp_path / "cases"
    write_recording(suite / "tile" / "x.dmlrec", unstated(tmp_path))
    (suite / "join").mkdir()
    (suite / "join" / "y.dmlrec").touch()
    (suite / "notes").mkdir()  # No operator has this name.
    (suite / "notes" / "z.dmlrec").touch()
    part = write(suite / "tile")
    for path in (suite, suite / "tile", part):
        assert suite_recordings([path]) == [suite / "x.dmlrec", suite / "y.dmlrec"]
    assert suite_recordings([tmp_path]) == []


def test_auto_reads_only_the_recording_of_the_cases_operator(tmp_path: Path) -> None:
    case = unstated(tmp_path)
    write_recording(tmp_path / "tile" / "x.dmlrec", case)
    # This file must not be read.
    (tmp_path / "join").mkdir()
    (tmp_path / "join" / "x.dmlrec").write_bytes(b"no recording")
    expected = chosen(tmp_path, AUTO)
    assert expected.name == f"recording:{tmp_path / 'x.dmlrec'}"
    assert isinstance(expected.against(case), Recorded)
    of_gather = replace(case, operator_name="GATHER")  # It has no file.
    assert expected.against(of_gather) is None


def test_auto_reports_a_damaged_file_of_an_operator(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "tile" / "x.dmlrec", unstated(tmp_path))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(BackendError, match="a damaged one"):
        chosen(tmp_path, AUTO)


@pytest.mark.parametrize("name", ["", "x.dmlrec"])
def test_against_accepts_a_folder_of_recordings_by_operator(tmp_path: Path, name: str) -> None:
    case = unstated(tmp_path)
    write_recording(tmp_path / "tile" / "x.dmlrec", case)
    expected = chosen(tmp_path, f"recording:{tmp_path / name}")
    assert isinstance(expected.against(case), Recorded)


def test_message_about_a_stale_case_gives_the_record_command(
    tmp_path: Path,
) -> None:
    write_recording(tmp_path / "tile" / "x.dmlrec", unstated(tmp_path), digest=STALE_DIGEST)
    command = f"dmlconf record {tmp_path} -b directml --operator TILE -o {tmp_path} --name x"
    with pytest.raises(BackendError) as caught:
        chosen(tmp_path, f"recording:{tmp_path}")
    assert str(caught.value).endswith(command)
    expected = chosen(tmp_path, AUTO)
    assert expected.against(unstated(tmp_path)) is None
    assert str(expected.recordings[0].stale_note([tmp_path])).endswith(command)


def test_recording_by_operator_never_judges_its_own_device(
    tmp_path: Path,
) -> None:
    case = unstated(tmp_path)
    first = write_recording(tmp_path / "one.dmlrec", case)
    write_recording(tmp_path / "tile" / "x.dmlrec", case)
    # Another driver, but the file of GATHER does not count for TILE.
    write_recording(tmp_path / "gather" / "x.dmlrec", case, driver="32.0")
    assert (
        chosen(tmp_path, f"recording:{tmp_path / 'x.dmlrec'}", f"recording:{first}").against(case)
        is None
    )


def test_recordings_do_not_count_as_case_files(tmp_path: Path) -> None:
    suite = load_suite([write(tmp_path)])
    write_recording(tmp_path / "recordings" / "x.dmlrec", unstated(tmp_path))
    assert load_suite([tmp_path]).digest == suite.digest
