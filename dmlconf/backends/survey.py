"""What a survey of this machine's adapters returns: the capabilities of DirectML on each.

`dmlconf.backends.directml.devices.survey` makes it.
"""

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
        adapter: what the system reports about it.
        capabilities: what DirectML can do on it; None if it cannot be used.
        refusal: why it cannot be used; None if it can.
    """

    adapter: Adapter
    capabilities: Capabilities | None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """DirectML and the adapters of this machine.

    Attributes:
        file: the file that DirectML was loaded from.
        adapters: the adapters, in the system's order.
    """

    file: DirectMLFile
    adapters: tuple[Surveyed, ...]
