"""Runs that a command compares: read from logs and certificates, or judged from recordings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from dmlconf.backends.protocol import BackendError
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.documents.problems import printable
from dmlconf.runner.log import RunLog, read_log

__all__ = ["read_run"]

_RECORDING: Final = ".dmlrec"
_CERTIFICATE: Final = ".dmlcert"

_WITH_LOG: Final = (
    ExitCode.SUCCESS, ExitCode.FAILED, ExitCode.INCOMPLETE, ExitCode.NOTHING_CHECKED,
)  # fmt: skip


def read_run(path: Path, suite: Sequence[Path] = ()) -> RunLog:
    """Return the run that a file holds.

    Args:
        path: a run log, a certificate, of which its log is taken as it is, or a recording, whose
            outcomes the reference judges.
        suite: the case files that a recording is of; the bundled suite where there are none.

    Raises:
        InvalidLogError: the file is no run log.
        RefusedError: the file is no certificate, or was changed after it was made.
        BackendError: the file is no recording of the suite.
    """
    if path.suffix == _RECORDING:
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
    click.echo(printable(f"judging the outcomes in {path}"), err=True)
    with TemporaryDirectory(prefix="dmlconf-compare-") as folder:
        log = Path(folder) / "run.jsonl"
        command = [
            sys.executable, "-m", "dmlconf", "run", *map(str, suite), "--quiet",
            "-b", f"recording:{path}", "--against", "numpy", "--log", str(log),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if done.returncode not in _WITH_LOG:
            lines = done.stderr.strip().removeprefix("Error: ") or f"exit code {done.returncode}"
            raise BackendError(lines)
        return read_log(log, own=True)
