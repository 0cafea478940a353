"""Update a recording, which has a file for each operator, after cases were recorded again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dmlconf.backends.protocol import BackendError
from dmlconf.backends.recording.file import read_recording, recording_bytes
from dmlconf.backends.recording.model import Entry, Recording
from dmlconf.backends.recording.store import by_operator, part_path, same_outcomes, same_source
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.loading.shared import shared_files
from dmlconf.cases.model import PlannedCase
from dmlconf.documents.problems import printable

__all__ = ["Part", "parts_kept", "renewed"]


@dataclass(frozen=True, slots=True)
class Part:
    """The file with the recording of one operator's cases.

    If `content` is None, the file stays as it is, since it has the same outcomes.
    """

    path: Path
    content: bytes | None


def parts_kept(
    path: Path, plan: Sequence[PlannedCase], source: Recording
) -> Mapping[str, Mapping[str, Entry]]:
    """Return by operator the entries to keep: those of existing cases that are not in the plan.

    An operator is left out if the plan has no case of it, or if its file is missing, damaged or
    without other cases. An operator has no entries if its other cases no longer exist.

    Args:
        path: the path of the recording, as FOLDER/NAME.dmlrec.
        plan: the cases that will be recorded.
        source: a recording without entries, of the backend that will run these cases.

    Raises:
        BackendError: entries to keep were recorded with another backend, version, adapter, driver
            or device, as `same_source` says, or with other capabilities.
        InvalidFilesError: a case file cannot be read, or is not valid.
    """
    by_name: dict[str, list[PlannedCase]] = {}
    for planned in plan:
        by_name.setdefault(planned.template.operator_name, []).append(planned)
    entries = {}
    for operator, chosen in by_name.items():
        old = _readable(part_path(path, operator))
        others = old.entries.keys() - {planned.identifier for planned in chosen} if old else set()
        if old is None or not others:
            continue
        others &= _existing(operator, chosen, part_path(path, operator).parent)
        if others and not same_source(old, source):
            message = (
                f"{part_path(path, operator)} was recorded with another backend, adapter or driver;"
                f" record all cases of {operator}, or choose another --name"
            )
            raise BackendError(printable(message))
        entries[operator] = {identifier: old.entries[identifier] for identifier in sorted(others)}
    return entries


def renewed(
    path: Path, recording: Recording, others: Mapping[str, Mapping[str, Entry]]
) -> Iterator[Part]:
    """Yield the file of each operator in a new recording.

    A file with the same outcomes from the same source stays as it is.

    Args:
        path: the path of the recording, as FOLDER/NAME.dmlrec.
        recording: the new recording, with all operators.
        others: the entries to keep, by operator, from `parts_kept`.

    Raises:
        BackendError: a file would be larger than a recording may be.
    """
    for operator, part in by_operator(recording).items():
        new = replace(part, entries={**others.get(operator, {}), **part.entries})
        target = part_path(path, operator)
        old = _readable(target)
        same = old is not None and same_outcomes(old, new)
        yield Part(target, None if same else recording_bytes(new))


def _readable(path: Path) -> Recording | None:
    try:
        return read_recording(path) if path.is_file() else None
    except BackendError:
        return None


def _existing(operator: str, chosen: Sequence[PlannedCase], folder: Path) -> set[str]:
    """Return the identifiers of all cases of an operator in the folders of the chosen cases.

    `folder` counts as well if it has case files.
    """
    folders = dict.fromkeys(planned.template.about.location.path.parent for planned in chosen)
    if any(folder.glob("*.yaml")) or shared_files([folder]):
        folders[folder] = None
    suite = load_suite(list(folders), operators=[operator])
    return {planned.identifier for planned in suite.plan()}
