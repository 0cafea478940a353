"""Paths inside the lab, and the environment of programs that run there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "CHECKOUT",
    "DIRECTML",
    "ENVIRONMENT",
    "HERE",
    "HOME",
    "PREFIX",
    "PYTHON",
    "windows",
]

CHECKOUT: Final = "/checkout"
"""The checkout, read-only."""

HERE: Final = "/here"
"""The caller's current directory, writable."""

HOME: Final = "/opt/lab"
PYTHON: Final = f"{HOME}/python"
DIRECTML: Final = f"{HOME}/DirectML.dll"
PREFIX: Final = f"{HOME}/prefix"


def windows(path: str) -> str:
    """Return how Windows programs name a path of the lab: Wine shows the tree as drive Z."""
    return "Z:" + path.replace("/", "\\")


ENVIRONMENT: Final[Mapping[str, str]] = {
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "XDG_RUNTIME_DIR": "/tmp",
    "WINEPREFIX": PREFIX,
    "WINEARCH": "win64",
    "WINEDEBUG": "-all",
    # No .NET, no browser; and a crash ends the process instead of waiting for a debugger.
    "WINEDLLOVERRIDES": "mscoree,mshtml,winedbg.exe=",
    # Direct3D 12 on Vulkan, and Vulkan on the processor.
    "WINE_D3D_CONFIG": "renderer=vulkan",
    "VK_DRIVER_FILES": "/usr/share/vulkan/icd.d/lvp_icd.json",
    "PYTHONPATH": windows(CHECKOUT),
    "DMLCONF_DIRECTML": windows(DIRECTML),
    "DMLCONF_SUBSTRATE": windows(f"{CHECKOUT}/lab/substrate.yaml"),
}
