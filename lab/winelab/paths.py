"""Translate paths in the arguments of a command to those by which the lab sees the same files."""

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
    """Return an argument with its paths as the lab sees them.

    A path below the current directory becomes relative to that directory. Any other path in the
    checkout becomes a path of the lab, such as `Z:\\checkout\\cases`. Text that is no absolute path
    and does not leave the current directory by `..` stays as it is.

    Args:
        argument: the argument, such as `--log=FILE`.
        here: the current directory.
        checkout: the checkout.

    Raises:
        LabError: the argument names a path that the lab does not see.
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
