"""Recordings, stored in a file for each operator or in a single file, are replayed and compared.

The tested code is in `dmlconf/backends/recording/store.py`, `dmlconf/backends/recording/file.py`,
`dmlconf/backends/recording/model.py`, `dmlconf/backends/recording/backend.py` (the replay) and
`dmlconf/backends/subject.py` (which environments count as the same).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.backends import registry
from dmlconf.backends.protocol import BackendError, Breakdown, Outcome, Outputs, Rejection
from dmlconf.backends.recording.digest import case_digest
from dmlconf.backends.recording.file import read_head, read_recording, recording_bytes
from dmlconf.backends.recording.model import Recording
from dmlconf.backends.recording.store import (
    StoredRecording,
    by_operator,
    part_path,
    recording_path,
    same_outcomes,
)
from dmlconf.cases.model import Case
from tests.backends.recordings import ENVIRONMENT, recording, write_changed
from tests.backends.test_recording import TILE
from tests.cases.suites import built

REFUSED = Rejection("CreateOperator", "E_INVALIDARG")


@pytest.fixture
def tile(tmp_path: Path) -> Case:
    return built(tmp_path, TILE)


@pytest.fixture
def fold(tile: Case) -> Case:
    """A case of FOLD with the desc of TILE."""
    return replace(tile, identifier="fold/x/a", operator_name="FOLD")


def write_by_operator(
    folder: Path, *recordings: tuple[Case, Recording], name: str = "x.dmlrec"
) -> Path:
    """Write recordings by operator, and return the path that names them together."""
    path = folder / name
    for case, part in recordings:
        file = part_path(path, case.operator_name)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(recording_bytes(part))
    return path


def recorded_refusal(case: Case, *, driver: str = "31.0.1") -> tuple[Case, Recording]:
    """Return a case with a recording in which its outcome is `REFUSED`."""
    digests = {case.identifier: case_digest(case)}
    return case, recording({case.identifier: REFUSED}, digests, driver=driver)


def replayed(argument: Path, *cases: Case) -> list[Outcome]:
    return list(registry.create(registry.parse(f"recording:{argument}")).run(cases))


def test_a_folder_of_recordings_by_operator_is_replayed(
    tmp_path: Path, tile: Case, fold: Case
) -> None:
    path = write_by_operator(tmp_path, recorded_refusal(tile), recorded_refusal(fold))
    assert replayed(tmp_path, tile, fold) == [REFUSED, REFUSED]
    assert replayed(path, tile, fold) == [REFUSED, REFUSED]
    assert replayed(part_path(path, "TILE").parent, tile) == [REFUSED]


def test_case_of_an_operator_without_a_file_breaks_down(
    tmp_path: Path, tile: Case, fold: Case
) -> None:
    [outcome] = replayed(write_by_operator(tmp_path, recorded_refusal(fold)), tile)
    assert isinstance(outcome, Breakdown)
    assert outcome.message == "the recording has no such case"


def test_only_the_files_of_the_requested_operators_are_read(
    tmp_path: Path, tile: Case, fold: Case
) -> None:
    path = write_by_operator(tmp_path, recorded_refusal(tile), recorded_refusal(fold))
    part_path(path, "FOLD").write_bytes(b"no recording")
    store = StoredRecording(path)
    assert store.find(tile) == REFUSED
    with pytest.raises(BackendError, match="not a recording"):
        store.find(fold)


def test_the_digest_of_a_recording_covers_every_file(
    tmp_path: Path, tile: Case, fold: Case
) -> None:
    path = write_by_operator(tmp_path, recorded_refusal(tile), recorded_refusal(fold))
    digests = {StoredRecording(path).digest()}
    write_by_operator(tmp_path, (fold, recording({})))
    digests.add(StoredRecording(path).digest())
    write_by_operator(tmp_path, (tile, recording({})))
    digests.add(StoredRecording(path).digest())
    part_path(path, "FOLD").unlink()
    digests.add(StoredRecording(path).digest())
    assert len(digests) == 4


def test_recordings_with_different_drivers_are_not_replayed_together(
    tmp_path: Path, tile: Case, fold: Case
) -> None:
    write_by_operator(tmp_path, recorded_refusal(tile), recorded_refusal(fold, driver="32.0"))
    with pytest.raises(BackendError, match="different backends, adapters or drivers"):
        replayed(tmp_path, tile)


def test_one_of_several_recordings_in_a_folder_must_be_named(tmp_path: Path, tile: Case) -> None:
    for name in ("x.dmlrec", "y.dmlrec"):
        write_by_operator(tmp_path, recorded_refusal(tile), name=name)
    with pytest.raises(BackendError, match=r"name one: .*x\.dmlrec, .*y\.dmlrec$"):
        recording_path(tmp_path)
    assert recording_path(tmp_path / "y.dmlrec") == tmp_path / "y.dmlrec"


def test_files_of_one_name_are_one_recording(
    tmp_path: Path,
) -> None:
    (tmp_path / "tile").mkdir()
    for file in (tmp_path / "x.dmlrec", tmp_path / "tile" / "x.dmlrec"):
        file.touch()
    assert recording_path(tmp_path) == tmp_path / "x.dmlrec"


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()  # No operator has this name.
    (tmp_path / "notes" / "x.dmlrec").touch()
    with pytest.raises(BackendError, match="has no recording"):
        recording_path(tmp_path)


def test_missing_recording_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"x\.dmlrec: cannot be read: No such file"):
        registry.create(registry.parse(f"recording:{tmp_path / 'x.dmlrec'}"))


def test_a_single_file_takes_precedence_over_files_by_operator(
    tmp_path: Path, tile: Case, fold: Case
) -> None:
    path = write_by_operator(tmp_path, recorded_refusal(tile))
    path.write_bytes(recording_bytes(recorded_refusal(fold)[1]))
    store = StoredRecording(path)
    assert store.find(fold) == REFUSED
    assert set(store.files().values()) == {path}


def test_recording_is_divided_by_operator() -> None:
    whole = recording(dict.fromkeys(("tile/a", "fold/a", "tile/b/c"), REFUSED))
    parts = by_operator(whole)
    assert {name: list(part.entries) for name, part in parts.items()} == {
        "FOLD": ["fold/a"],
        "TILE": ["tile/a", "tile/b/c"],
    }
    assert parts["FOLD"].environment == whole.environment


def test_operator_file_does_not_depend_on_others() -> None:
    small = recording({"tile/a": REFUSED})
    large = recording({"tile/a": REFUSED, "fold/a": Outputs({"X": np.arange(9)})})
    assert recording_bytes(by_operator(small)["TILE"]) == recording_bytes(
        by_operator(large)["TILE"]
    )


def recording_of_values(*values: float) -> Recording:
    return recording({"tile/a": Outputs({"X": np.array(values, np.float32)})})


def test_same_outcomes_have_equal_bits_and_case_digests() -> None:
    first = recording_of_values(1.0, 0.0)
    assert same_outcomes(first, recording_of_values(1.0, 0.0))
    assert not same_outcomes(first, recording_of_values(1.0, -0.0))
    assert not same_outcomes(first, recording({"tile/a": REFUSED}))
    assert not same_outcomes(first, recording({}))
    stale = recording({"tile/a": first.entries["tile/a"].outcome}, {"tile/a": "1" * 64})
    assert not same_outcomes(first, stale)


@pytest.mark.parametrize(
    ("environment", "same"),
    [
        ({"python": "3.14.0"}, True),
        ({"details": {**ENVIRONMENT["details"], "luid": "1"}}, True),
        ({"details": {**ENVIRONMENT["details"], "directml_sha256": "1"}}, False),
        ({"details": {**ENVIRONMENT["details"], "metacommands": True}}, False),
        ({"driver": "32.0"}, False),
        ({"adapter": None}, False),
    ],
)
def test_only_device_and_options_distinguish_recordings(
    environment: dict[str, Any], same: bool
) -> None:
    assert same_outcomes(recording({}), recording({}, **environment)) is same
    newer = replace(recording({}, **environment), dmlconf="9.9")
    assert same_outcomes(recording({}), newer) is same


def test_head_is_read_from_many_lines_or_one(
    tmp_path: Path,
) -> None:
    whole = recording({"a": REFUSED})
    path = tmp_path / "x.dmlrec"
    path.write_bytes(recording_bytes(whole))
    assert read_head(path) == replace(whole, entries={})  # The head is all but the cases.
    in_one_line = write_changed(path, recording_bytes(whole))
    assert read_head(in_one_line) == replace(whole, entries={})


def test_head_of_an_unknown_format_is_refused(tmp_path: Path) -> None:
    whole, path = recording({"a": REFUSED}), tmp_path / "x.dmlrec"
    with pytest.raises(BackendError, match="format 9"):
        read_head(write_changed(path, recording_bytes(whole), format=9))


def test_only_four_operators_stay_in_memory(tmp_path: Path, tile: Case) -> None:
    names = ("TILE", "FOLD", "GATHER", "JOIN", "SPLIT", "SLICE")
    cases = [replace(tile, identifier=f"{name.lower()}/a", operator_name=name) for name in names]
    path = write_by_operator(tmp_path, *map(recorded_refusal, cases))
    store = StoredRecording(path)
    parts = [store.part(name) for name in names]
    assert all(store.part(name) is part for name, part in zip(names[2:], parts[2:], strict=True))
    assert store.part(names[1]) is not parts[1]
    assert store.part(names[0]) is not parts[0]
    assert store.part(names[0]) == read_recording(part_path(path, names[0]))
