"""Survey the adapters of this machine: what DirectML can do on each.

Devices are opened in another process. If a driver crashes or hangs there, the survey notes that for
its adapter, and goes on with the next adapter.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final

from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.library import DirectMLFile, Libraries, load
from dmlconf.backends.directml.devices.adapters import NO_ADAPTER, Adapter, Adapters
from dmlconf.backends.directml.devices.device import Device
from dmlconf.backends.process_end import how_it_ended
from dmlconf.backends.process_start import (
    children_ignore_interrupts,
    existing_working_folder,
    ignore_interrupts,
)
from dmlconf.backends.protocol import BackendError
from dmlconf.backends.survey import Survey, Surveyed

__all__ = ["Survey", "Surveyed", "survey"]

_SECONDS: Final = 60.0
"""How long DirectML may take to load, or a device to open."""


def survey(path: str | None = None) -> Survey:
    """Open a device on each adapter in turn, and ask DirectML what it can do there.

    Args:
        path: the file of DirectML, or None to search for it.

    Raises:
        BackendError: DirectML cannot be used, or there is no adapter.
    """
    entries: list[Surveyed] = []
    while True:
        process = _Process(path, len(entries))
        for message in process.messages():
            if isinstance(message, Surveyed):
                entries.append(message)
        listed = process.listed
        if listed is None:
            raise BackendError(process.refusal or f"DirectML: its process {process.end}")
        if not listed.adapters:
            raise BackendError(NO_ADAPTER)
        if len(entries) < len(listed.adapters):
            # The process ended at this adapter; another process begins with the next adapter.
            adapter = listed.adapters[len(entries)]
            entries.append(Surveyed(adapter, None, f"while opening it, the process {process.end}"))
        if len(entries) >= len(listed.adapters):
            return Survey(listed.file, tuple(entries))


@dataclass(frozen=True, slots=True)
class _Listed:
    """What is known before any device is opened."""

    file: DirectMLFile
    adapters: tuple[Adapter, ...]


class _Process:
    """A process that loads DirectML, lists the adapters, and opens devices on some of them.

    Attributes:
        listed: what the process sent before it opened a device; None if it could not list adapters.
        refusal: why DirectML cannot be used, if the process said so.
        end: how the process ended, or that it did not answer.
    """

    def __init__(self, path: str | None, first: int) -> None:
        """Start the process, which opens devices on the adapters from index `first` on."""
        context = multiprocessing.get_context("spawn")
        self.listed: _Listed | None = None
        self.refusal: str | None = None
        self.end = ""
        self._connection, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(theirs, path, first), daemon=True)
        with children_ignore_interrupts(), existing_working_folder():
            self._process.start()
        theirs.close()

    def messages(self) -> Iterator[Surveyed]:
        """Yield what each adapter from index `first` on can do."""
        try:
            while self._connection.poll(_SECONDS):
                message = self._connection.recv()
                if isinstance(message, _Listed):
                    self.listed = message
                elif isinstance(message, str):
                    self.refusal = message
                else:
                    yield message
            self.end = f"did not answer for {_SECONDS:.0f} seconds"
        except (EOFError, OSError):
            self.end = how_it_ended(self._process)
        finally:
            self._process.kill()
            self._process.join()
            self._connection.close()


def _work(connection: Connection, path: str | None, first: int) -> None:
    ignore_interrupts()
    with suppress(BrokenPipeError):
        try:
            libraries = load(path)
            with Adapters(libraries) as adapters:
                connection.send(_Listed(libraries.file, adapters.found))
                for adapter in adapters.found[first:]:
                    connection.send(_surveyed(libraries, adapters, adapter))
        except BackendError as error:
            connection.send(str(error))


def _surveyed(libraries: Libraries, adapters: Adapters, adapter: Adapter) -> Surveyed:
    try:
        device = Device(libraries, adapters.native(adapter))
    except BackendError as error:
        return Surveyed(adapter, None, str(error))
    try:
        return Surveyed(adapter, device.capabilities())
    except HResultError as error:
        return Surveyed(adapter, None, str(error))
    finally:
        device.close()
