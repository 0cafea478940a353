"""What DirectML can do on each adapter of this machine."""

from __future__ import annotations

from dataclasses import dataclass

from dmlconf.backends.directml.adapters import Adapter, Adapters
from dmlconf.backends.directml.device import Device
from dmlconf.backends.directml.hresult import HResultError
from dmlconf.backends.directml.library import DirectMLFile, load
from dmlconf.backends.protocol import BackendError, Capabilities

__all__ = ["Survey", "Surveyed", "survey"]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One adapter.

    Attributes:
        adapter: what the system says of it.
        capabilities: what DirectML can do on it; None where it cannot be used.
        refusal: why it cannot be used; None where it can.
    """

    adapter: Adapter
    capabilities: Capabilities | None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """DirectML and the adapters of this machine.

    Attributes:
        file: what DirectML was loaded from.
        adapters: in the system's order.
    """

    file: DirectMLFile
    adapters: tuple[Surveyed, ...]


def survey(path: str | None = None) -> Survey:
    """Open a device on each adapter in turn, and ask DirectML what it can do there.

    Args:
        path: the file of DirectML, or None to look for it.

    Raises:
        BackendError: DirectML cannot be used, or there is no adapter.
    """
    libraries = load(path)
    found = []
    with Adapters(libraries) as adapters:
        for adapter in adapters.found:
            try:
                device = Device(libraries, adapters.native(adapter))
            except BackendError as error:
                found.append(Surveyed(adapter, None, str(error)))
                continue
            try:
                found.append(Surveyed(adapter, device.capabilities()))
            except HResultError as error:
                found.append(Surveyed(adapter, None, str(error)))
            finally:
                device.close()
    if not found:
        raise BackendError("there is no adapter for Direct3D 12: is a driver installed?")
    return Survey(libraries.file, tuple(found))
