"""Check that the lab works: Windows CPython starts, and DirectML computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from winelab.tree import CHECKOUT, windows

__all__ = ["check"]

VERSIONS: Final = """
import platform, sys
from importlib.metadata import version
names = ("numpy", "click", "rich", "PyYAML", "jsonschema")
import numpy, click, rich, yaml, jsonschema
assert numpy.arange(3).sum() == 3
libraries = (f"{name} {version(name)}" for name in names)
print(f"Windows Python {platform.python_version()}", *libraries, sep=", ")
"""

IDENTITY: Final = windows(f"{CHECKOUT}/lab/smoke.yaml")
"""A case that returns its input, so that a lab that computes nothing does not pass."""


def check(python: Callable[..., int]) -> int:
    """Run the checks, each only if the previous ones pass; return the first nonzero exit code.

    Args:
        python: runs Windows CPython in the lab with the given arguments.
    """
    return (
        python("-c", VERSIONS)
        or python("-m", "dmlconf", "devices")
        or python("-m", "dmlconf", "run", "-b", "directml", IDENTITY)
    )
