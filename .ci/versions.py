"""Compare the versions in docs/requirements.md with those that an environment has.

python .ci/versions.py lowest   the environment that `lowest_versions` of .ci/common made
python .ci/versions.py newest   one that pip made today; --write puts its versions into the page

Prints each version. Ends with 1 if the environment has another lowest version than the page says.
Newer versions than the page says are named, and are no failure: they come without a change here.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "requirements.md"
ROW: Final = re.compile(
    r"^\| (?P<name>[a-z]\w+) \| (?P<lowest>[\d.]+)[^|]* \| (?P<newest>[\d.]+) \|$"
)


def is_part_of(said: str, actual: str) -> bool:
    """Return whether a version is one that the page means: 8.1 means 8.1.0 and 8.1.8."""
    parts = said.split(".")
    return (actual.split(".") + ["0"] * len(parts))[: len(parts)] == parts


def main(column: str, write: bool) -> int:
    """Compare one column of the page with this environment."""
    lines = PAGE.read_text("utf-8").splitlines()
    differing = 0
    for number, line in enumerate(lines):
        row = ROW.match(line)
        if row is None:
            continue
        said, actual = row[column], version(row["name"])
        if is_part_of(said, actual):
            print(f"{row['name']} {actual}")
            continue
        differing += 1
        print(f"{row['name']} {actual}; docs/requirements.md:{number + 1} says {said}")
        start, end = row.span(column)
        lines[number] = line[:start] + ".".join(actual.split(".")[:2]) + line[end:]
    if write and differing:
        PAGE.write_text("\n".join(lines) + "\n", "utf-8")
        return 0
    return int(bool(differing) and column == "lowest")


if __name__ == "__main__":
    options = sys.argv[1:]
    if not options or options[0] not in ("lowest", "newest"):
        sys.exit(__doc__)
    sys.exit(main(options[0], "--write" in options))
