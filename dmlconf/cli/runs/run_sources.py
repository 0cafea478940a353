"""Read the runs that `dmlconf compare` compares, from run logs, certificates or recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from dmlconf.backends.recording.file import read_recording
from dmlconf.backends.recording.store import StoredRecording, recording_path, recording_paths
from dmlconf.backends.subject import REFERENCE
from dmlconf.cli.common.cache import checked_files
from dmlconf.cli.output.console import say
from dmlconf.documents.files import is_folder
from dmlconf.documents.problems import printable
from dmlconf.engine.consumers import logging_to, run_through
from dmlconf.engine.core import Engine
from dmlconf.engine.making_runs import plan_run
from dmlconf.run_log.lines import InvalidLogError
from dmlconf.run_log.log import LogWriter, RunLog, read_log
from dmlconf.run_log.other_files import about_folder, logs_in

__all__ = ["read_run"]

_RECORDING: Final = ".dmlrec"
_CERTIFICATE: Final = ".dmlcert"


def read_run(path: Path, suite: Sequence[Path] = ()) -> RunLog:
    """Return the run that a file holds.

    Args:
        path: a run log; a certificate (`.dmlcert`); or a recording (`.dmlrec`, or a folder), whose
            outcomes are judged against the reference.
        suite: the case files of a recording; empty for the bundled suite.

    Raises:
        InvalidFilesError: a case file is invalid.
        InvalidLogError: the file cannot be read, is not a run log, or contradicts itself.
        RefusedError: the file cannot be read, is not a certificate, or was changed.
        MissingExtraError: the certificate is signed, and `cryptography` cannot be imported.
        BackendError: the recording cannot be read, or the folder has none or several.
    """
    if is_folder(path) and logs_in(path) and not _has_recording(path):
        raise InvalidLogError(printable(about_folder(path)))
    if path.suffix == _RECORDING or is_folder(path):
        return _judged(path, suite)
    return _certified(path) if path.suffix == _CERTIFICATE else read_log(path)


def _has_recording(folder: Path) -> bool:
    return any(folder.glob(f"*{_RECORDING}")) or bool(recording_paths(folder))


def _certified(path: Path) -> RunLog:
    from dmlconf.certification.certificate import read_certificate
    from dmlconf.certification.contents import read_log_member
    from dmlconf.certification.errors import RefusedError

    try:
        log = read_certificate(path).members["run.jsonl"]
        with TemporaryDirectory(prefix="dmlconf-compare-") as folder:
            return read_log_member(log, Path(folder), log.count(b"\n") - 2)
    except RefusedError as error:
        raise error.of(path) from error


def _judged(path: Path, suite: Sequence[Path]) -> RunLog:
    recorded = _recorded_cases(path)
    say(printable(f"judging the outcomes in {path}"))
    run = plan_run(
        suite, f"recording:{path}", cases=recorded, against=REFERENCE, store=checked_files()
    )
    with TemporaryDirectory(prefix="dmlconf-compare-") as folder:
        log = Path(folder) / "run.jsonl"
        with Engine(run) as engine, log.open("w", encoding="utf-8") as stream:
            run_through(engine, logging_to(LogWriter(stream)))
        return read_log(log, own=True)


def _recorded_cases(path: Path) -> frozenset[str]:
    files = StoredRecording(recording_path(path)).files().values()
    return frozenset(
        identifier for file in set(files) for identifier in read_recording(file).entries
    )
