"""Errors of making, signing and reading certificates, and of keys.

Verdicts that a certificate must not hold are no errors, but findings (`certification.findings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dmlconf.documents.problems import ExpectedError, printable
from dmlconf.extras import install_command

__all__ = ["CertificationError", "MissingExtraError", "RefusedError", "UnwritableJournalError"]


class CertificationError(ExpectedError):
    """A certificate or a key cannot be made or used; the message says why."""


class MissingExtraError(CertificationError):
    """The package `cryptography` is not installed, or does not load."""

    def __init__(self, cause: ImportError) -> None:
        if isinstance(cause, ModuleNotFoundError):
            help_ = f"install it with `{install_command('certify')}`"
        else:
            help_ = (
                f"it does not load here ({printable(str(cause))}). Leave --key out, and sign the "
                "certificate on another machine with `dmlconf sign`"
            )
        super().__init__(f"signatures need the package cryptography: {help_}")


class UnwritableJournalError(CertificationError):
    """Outcomes can no longer be kept, for example on a full disk; earlier ones stay."""


class RefusedError(ExpectedError):
    """A file is not a certificate, was changed after it was made, or cannot be read.

    Attributes:
        reasons: what is wrong, one clause each.
        cases: identifiers of the cases whose outputs were changed, if known.
        unread: whether the file could not be read.
    """

    def __init__(self, *reasons: str, cases: Sequence[str] = (), unread: bool = False) -> None:
        self.reasons = reasons
        self.cases = tuple(cases)
        self.unread = unread
        super().__init__("; ".join(reasons))

    def of(self, file: Path) -> RefusedError:
        """Return the error with the file's name before each reason."""
        reasons = (f"{file}: {reason}" for reason in self.reasons)
        return RefusedError(*reasons, cases=self.cases, unread=self.unread)
