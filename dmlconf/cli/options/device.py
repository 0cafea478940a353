"""The options of commands that test one backend, as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, Final

from dmlconf.backends import registry
from dmlconf.cli.common.command import options
from dmlconf.cli.options.backend import backend_options, directml_option, jobs_option, with_directml
from dmlconf.excuses.substrate import NO_SUBSTRATE, Substrate, read_substrate
from dmlconf.workers.execution import Limits

__all__ = ["DeviceOptions", "single_device_options"]


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """How a command runs the backend that it tests.

    Attributes:
        directml: the path of the DirectML library, if the user names one.
        jobs: how many worker processes run in parallel; None for the default.
        timeout: seconds that one case may take in a worker process.
        worker_memory: MiB by which a worker process may grow before it is replaced.
        substrate: the file of `--substrate`, if the user names one.
    """

    directml: str | None
    jobs: int | None
    timeout: float
    worker_memory: int
    substrate: Path | None

    def tested(self, backend: str) -> registry.BackendName:
        """Return the backend of this name, with the DirectML library.

        Raises:
            BackendError: there is no such backend, or there are several.
            click.UsageError: the backend cannot use the DirectML file, or the path has a comma.
        """
        [name] = with_directml([registry.parse(backend)], self.directml)
        return name

    def limits(self) -> Limits:
        """Return the limits of worker processes; by default one process."""
        return Limits(self.jobs or 1, self.timeout, self.worker_memory << 20)

    def known_limits(self) -> Substrate:
        """Return the limits that the substrate file lists; none without a file.

        Raises:
            InvalidFilesError: the file is invalid.
        """
        return read_substrate(self.substrate) if self.substrate else NO_SUBSTRATE


def _as_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function take one `device_options` in place of single options."""

    @wraps(function)
    def command(**arguments: Any) -> Any:
        of_device = {field.name: arguments.pop(field.name) for field in fields(DeviceOptions)}
        return function(device_options=DeviceOptions(**of_device), **arguments)

    return command


single_device_options: Final = options(
    directml_option, jobs_option("1"), backend_options, _as_device
)
"""Add the options of `DeviceOptions`, which the command receives as `device_options`."""
