"""Update a recording, which has a file for each operator, after cases were recorded again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dmlconf.backends.protocol import BackendError
from dmlconf.backends.recording.file import read_recording, recording_bytes
from dmlconf.backends.recording.model import Entry, Recording
from dmlconf.backends.recording.store import by_operator, part_path, same_outcomes, same_source
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.loading.shared import shared_files
from dmlconf.cases.model import PlannedCase
from dmlconf.documents.problems import printable

__all__ = ["Kept", "Part", "parts_kept", "renewed"]


@dataclass(frozen=True, slots=True)
class Part:
    """The file with the recording of one operator's cases.

    If `content` is None, the file stays as it is, since it has the same outcomes.
    """

    path: Path
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a new recording of an operator keeps of its file.

    Attributes:
        entries: the entries of existing cases that are not in the plan.
        dropped: the other cases of the file.
    """

    entries: Mapping[str, Entry] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()


def parts_kept(path: Path, plan: Sequence[PlannedCase], source: Recording) -> Mapping[str, Kept]:
    """Return by operator what to keep.

    An operator is left out if the plan has no case of it, or if its file is missing or damaged.

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
    kept = {}
    for operator, chosen in by_name.items():
        old = _readable(part_path(path, operator))
        if old is None:
            continue
        others = old.entries.keys() - {planned.identifier for planned in chosen}
        if others:
            others &= _existing(operator, chosen, part_path(path, operator).parent)
        if others and not same_source(old, source):
            message = (
                f"{part_path(path, operator)} was recorded with another backend, adapter or driver;"
                f" record all cases of {operator}, or choose another --name"
            )
            raise BackendError(printable(message))
        entries = {identifier: old.entries[identifier] for identifier in sorted(others)}
        kept[operator] = Kept(entries, frozenset(old.entries.keys() - others))
    return kept


def renewed(path: Path, recording: Recording, kept: Mapping[str, Kept]) -> Iterator[Part]:
    """Yield the file of each operator in a new recording.

    A file with the same outcomes from the same source stays as it is. Entries from this source that
    another process has added or renewed since `parts_kept` read the file are kept, too.

    Args:
        path: the path of the recording, as FOLDER/NAME.dmlrec.
        recording: the new recording, with all operators.
        kept: what to keep, by operator, from `parts_kept`.

    Raises:
        BackendError: a file would be larger than a recording may be.
    """
    for operator, part in by_operator(recording).items():
        own = kept.get(operator, Kept())
        target = part_path(path, operator)
        old = _readable(target)
        others = dict(own.entries)
        if old is not None and same_source(old, part):
            others |= {name: old.entries[name] for name in old.entries.keys() - own.dropped}
        new = replace(part, entries={**others, **part.entries})
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
