"""The three lines that begin a report: what was tested, against what, and which run it was."""

from __future__ import annotations

import re
from typing import Final

from dmlconf.runner.log import Header

__all__ = ["expected_by", "heading_lines"]

_RECORDING: Final = re.compile(r"recording:.*?directml-([\d.]*\d)\.dmlrec\Z", re.DOTALL)


def heading_lines(header: Header) -> list[tuple[str, str]]:
    """Return three names with their values."""
    env = header.environment
    version, driver = env.get("version"), env.get("driver")
    tested = [header.backend, version and f"version {version}", env.get("adapter")]
    tested.append(driver and f"driver {driver}")
    software = {"Python": env.get("python"), "NumPy": env.get("numpy")}
    run = [
        f"{header.selected:,} case{'s' if header.selected != 1 else ''}",
        f"dmlconf {header.dmlconf}",
        *(f"{name} {number}" for name, number in software.items() if number),
        header.started.replace("T", " ").replace("+00:00", " UTC"),
    ]
    return [
        ("tested", ", ".join(filter(None, tested))),
        ("expected", expected_by(header)),
        ("run", ", ".join(run)),
    ]


def expected_by(header: Header) -> str:
    """Say where expected values come from."""
    if header.against == header.backend:
        return "by the cases alone: a backend is never compared with itself"
    suites = str(header.options.get("against", "auto")) == "auto"
    sources = (_source(name, suites=suites) for name in header.against.split(", else "))
    return ", else ".join(["by the cases", *(f"by {source}" for source in sources)])


def _source(name: str, *, suites: bool) -> str:
    recording = _RECORDING.match(name)
    if recording is None:
        return name
    whose = "the suite's" if suites else "a"
    return f"{whose} recording of DirectML {recording[1]}"
