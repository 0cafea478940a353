"""The exit codes of all commands."""

from __future__ import annotations

from enum import IntEnum

from dmlconf.documents.problems import ExpectedError

__all__ = ["ExitCode", "exit_code_of"]


class ExitCode(IntEnum):
    """How a command ended."""

    SUCCESS = 0
    """Nothing failed; a run has a verdict on every selected case."""
    FAILED = 1
    """A verdict fails the run, or a demand such as `--min-passed` is not met.

    Also: a check or a captured program failed, a case could not be recorded, or a failure did not
    occur again.
    """
    USAGE = 2
    """The command was used wrongly, or a key or a history cannot be used."""
    INVALID_FILE = 3
    """A file, such as a case file, is invalid, or a certificate is refused."""
    BACKEND = 4
    """A backend could not be used."""
    NOTHING_SELECTED = 5
    """No case was selected, or there is nothing to do: nothing failed, or nothing was captured."""
    INCOMPLETE = 6
    """The command was interrupted, a selected case has no verdict, or a log or journal was lost."""
    NOTHING_CHECKED = 7
    """The run is complete and nothing fails it, but no case passed or was waived.

    Also: two compared runs have no case in common.
    """
    OUTPUT = 8
    """Output, such as a report, could not be written."""
    INTERNAL = 70
    """A bug in dmlconf itself."""


def exit_code_of(error: ExpectedError) -> ExitCode:
    """Return the exit code of an error that the user can fix.

    Raises:
        TypeError: the class of the error has no exit code.
    """
    from dmlconf.backends.protocol import BackendError
    from dmlconf.certification.errors import (
        CertificationError,
        RefusedError,
        UnwritableJournalError,
    )
    from dmlconf.cli.output.files import OutputError
    from dmlconf.documents.problems import InvalidFilesError
    from dmlconf.history.errors import HistoryError
    from dmlconf.run_log.log import InvalidLogError, LogWriteError

    match error:
        case BackendError():
            return ExitCode.BACKEND
        case OutputError():
            return ExitCode.OUTPUT
        case UnwritableJournalError():
            return ExitCode.INCOMPLETE
        case CertificationError() | HistoryError():
            return ExitCode.USAGE
        case InvalidFilesError() | InvalidLogError() | RefusedError():
            return ExitCode.INVALID_FILE
        case LogWriteError():
            return ExitCode.FAILED if error.failing else ExitCode.INCOMPLETE
        case _:
            raise TypeError(f"{type(error).__name__} has no exit code") from error
