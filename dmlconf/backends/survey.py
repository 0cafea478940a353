"""The capabilities of DirectML on each adapter of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmlconf.backends.directml.api.library import DirectMLFile
    from dmlconf.backends.directml.devices.adapters import Adapter
    from dmlconf.backends.protocol import Capabilities

__all__ = ["Survey", "Surveyed"]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One adapter.

    Attributes:
        capabilities: what DirectML can do on the adapter; None if the adapter cannot be used.
        refusal: why the adapter cannot be used; None if it can.
    """

    adapter: Adapter
    capabilities: Capabilities | None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """DirectML and the adapters of this machine, in the order of the adapters' indices."""

    file: DirectMLFile
    adapters: tuple[Surveyed, ...]
