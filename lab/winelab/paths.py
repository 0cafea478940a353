"""Translate the paths in a command's arguments to what the lab sees of the machine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from winelab.errors import LabError
from winelab.tree import CHECKOUT, windows

__all__ = ["translate"]

BETWEEN: Final = re.compile(r"([=:,])")
"""Characters that may precede a path within an argument, as in `--log=FILE` and `junit:FILE`."""


def translate(argument: str, here: Path, checkout: Path) -> str:
    """Return an argument as the lab needs it.

    Paths beneath the current directory become relative to it, others in the checkout become the
    lab's; whatever is not absolute and does not leave the current directory stays as it is.

    Raises:
        LabError: it names a path that the lab does not see.
    """
    return "".join(_translate(part, here, checkout) for part in BETWEEN.split(argument))


def _translate(part: str, here: Path, checkout: Path) -> str:
    leaves = os.path.normpath(part).split("/")[0] == ".."
    if part.startswith("//") or not (part.startswith("/") or leaves):
        return part
    path = (here / part).resolve()
    if path.is_relative_to(here):
        return str(path.relative_to(here))
    if path.is_relative_to(checkout):
        return windows(str(Path(CHECKOUT) / path.relative_to(checkout)))
    raise LabError(f"{part}: the lab sees only the current directory and the checkout")
