"""Runs that a command compares: read from logs and certificates, or judged from recordings."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from dmlconf.backends.protocol import BackendError
from dmlconf.backends.recording.file import read_recording
from dmlconf.backends.recording.store import StoredRecording, recording_path
from dmlconf.cli.child import child_command
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.documents.problems import printable
from dmlconf.runner.log import RunLog, read_log

__all__ = ["read_run"]

_RECORDING: Final = ".dmlrec"
_CERTIFICATE: Final = ".dmlcert"

_GRAPHS: Final = "graphs"
"""The folder of cases that `-o` does not name: it selects graphs by the operators in them."""

_WITH_LOG: Final = (
    ExitCode.SUCCESS, ExitCode.FAILED, ExitCode.INCOMPLETE, ExitCode.NOTHING_CHECKED,
)  # fmt: skip


def read_run(path: Path, suite: Sequence[Path] = ()) -> RunLog:
    """Return the run that a file holds.

    Args:
        path: a run log, a certificate, whose log is taken as it is, or a recording, whose outcomes
            the reference judges.
        suite: the case files that a recording belongs to; empty for the bundled suite.

    Raises:
        InvalidLogError: the file is not a run log.
        RefusedError: the file is not a certificate, or was changed after it was made.
        BackendError: the file is not a recording of the suite.
    """
    if path.suffix == _RECORDING or path.is_dir():
        return _judged(path, suite)
    return _certified(path) if path.suffix == _CERTIFICATE else read_log(path)


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
    """Return the verdicts on the cases that a recording holds."""
    recorded = _recorded_cases(path)
    click.echo(printable(f"judging the outcomes in {path}"), err=True)
    folders = {identifier.partition("/")[0] for identifier in recorded}
    narrow = () if _GRAPHS in folders else sorted(folders)
    operators = [argument for name in narrow for argument in ("-o", name.upper())]
    with TemporaryDirectory(prefix="dmlconf-compare-") as folder:
        log = Path(folder) / "run.jsonl"
        how = ["--quiet", "-b", f"recording:{path}", "--against", "numpy", "--log", str(log)]
        command = child_command("run", *map(str, suite), *operators, *how)
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if done.returncode not in _WITH_LOG:
            _, _, reason = done.stderr.strip().rpartition("Error: ")
            raise BackendError(reason or f"exit code {done.returncode}")
        whole = read_log(log, own=True)
    held = tuple(verdict for verdict in whole.verdicts if verdict.case in recorded)
    options = {name: value for name, value in whole.header.options.items() if name != "operators"}
    return replace(whole, header=replace(whole.header, options=options), verdicts=held)


def _recorded_cases(path: Path) -> frozenset[str]:
    """Return the identifiers of the cases that a recording holds.

    Raises:
        BackendError: there is no such recording, or a file of it cannot be read.
    """
    files = StoredRecording(recording_path(path)).files().values()
    return frozenset(
        identifier for file in set(files) for identifier in read_recording(file).entries
    )
