"""Print what CHANGELOG.md says of a release: `python -m release.notes v0.2.0`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from dmlconf import __version__

__all__ = ["notes"]

ROOT = Path(__file__).resolve().parents[1]


def notes(tag: str, version: str, changes: str) -> str:
    """Return the changes of a version.

    Args:
        tag: of the release, such as `v0.2.0`.
        version: of dmlconf.
        changes: the text of CHANGELOG.md.

    Raises:
        ValueError: the tag is of another version, or no changes are listed.
    """
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, and dmlconf's version is {version}: tag v{version}")
    heading = re.escape(version)
    section = re.search(rf"^## {heading}\b.*?\n(.*?)(?=^## |\Z)", changes, re.M | re.S)
    if section is None or not section[1].strip():
        raise ValueError(f"CHANGELOG.md has no changes under `## {version}`")
    return section[1].strip() + "\n"


if __name__ == "__main__":
    try:
        print(notes(sys.argv[1], __version__, (ROOT / "CHANGELOG.md").read_text("utf-8")), end="")
    except ValueError as error:
        sys.exit(f"Error: {error}")
