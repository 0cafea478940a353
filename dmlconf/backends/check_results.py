"""The results of `dmlconf devices --check`: for each adapter, one result of each check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmlconf.backends.directml.api.library import DirectMLFile
    from dmlconf.backends.directml.devices.adapters import Adapter

__all__ = ["CheckResult", "CheckStatus", "Checked", "DeviceChecks", "OnResult"]


class CheckStatus(StrEnum):
    """The status of one check.

    FAILED: the device did what it must not do. UNSUPPORTED: the device may decline, and did.
    BROKEN: a call failed, or the check's process ended or hung.
    """

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"
    UNSUPPORTED = "unsupported"

    @property
    def fails(self) -> bool:
        """Whether a result with this status makes the command fail."""
        return self in (CheckStatus.FAILED, CheckStatus.BROKEN)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Attributes:
        message: what the check observed, or why it could observe nothing.
    """

    name: str
    status: CheckStatus
    message: str
    seconds: float = 0.0


OnResult = Callable[[int, str, CheckResult], None]
"""Called with an adapter's index, its description and a result, as soon as there is one."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One adapter with the results of its checks."""

    adapter: Adapter
    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class DeviceChecks:
    """The adapters of this machine with their results, in the order of the adapters' indices."""

    file: DirectMLFile
    adapters: tuple[Checked, ...]
