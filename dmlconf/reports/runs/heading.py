"""The facts that head a report: what was tested, against what, and in which run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dmlconf.documents.wording import counted
from dmlconf.run_log.log import Header

__all__ = [
    "backend_text",
    "expected_by",
    "heading_lines",
    "recording_of",
    "run_facts",
    "software_text",
    "tested_facts",
]

_RECORDING: Final = re.compile(r"recording:.*?directml-([\d.]*\d)\.dmlrec\Z", re.DOTALL)


def heading_lines(header: Header) -> list[tuple[str, str]]:
    """Return the first three lines of a report as names and values."""
    env = header.environment
    version, driver = env.get("version"), env.get("driver")
    python, challenge = env.get("python"), header.options.get("challenge")
    backend = f"{header.backend} {version}" if version else header.backend
    tested = [backend, env.get("adapter"), driver and f"driver {driver}"]
    run = [
        counted(header.selected, "case"),
        *([_shard(header.shard)] if header.shard else []),
        *([f"challenge {challenge}"] if challenge else []),
        f"dmlconf {header.dmlconf}",
        *([f"Python {python}"] if python else []),
        f"{header.started[:16].replace('T', ' ')} UTC",
    ]
    return [
        ("tested", ", ".join(filter(None, tested))),
        ("expected", expected_by(header)),
        ("run", ", ".join(run)),
    ]


def tested_facts(header: Header) -> list[tuple[str, str]]:
    """Return facts about what was tested as names and values, without absent values."""
    env = header.environment
    facts = [
        ("Device", env.get("adapter")),
        ("Driver", env.get("driver")),
        ("Backend", backend_text(header)),
        ("Date", f"{header.started[:16].replace('T', ' ')} UTC"),
        ("Expected values", expected_by(header)),
    ]
    return [(name, str(value)) for name, value in facts if value]


def backend_text(header: Header) -> str:
    """Return the backend of a run and, if it is known, its version: `directml, version 1.15.4`."""
    version = header.environment.get("version")
    return f"{header.backend}, version {version}" if version else header.backend


def software_text(header: Header) -> str:
    """Return what judged a run: `dmlconf 0.1, Python 3.13.1, NumPy 2.3.0`."""
    env = header.environment
    software = {"dmlconf": header.dmlconf, "Python": env.get("python"), "NumPy": env.get("numpy")}
    return ", ".join(f"{name} {number}" for name, number in software.items() if number)


def run_facts(header: Header) -> list[tuple[str, str]]:
    """Return facts about the run as names and values, without absent values."""
    facts = [
        ("Platform", header.environment.get("platform")),
        ("Software", software_text(header)),
        ("Shard", _shard(header.shard) if header.shard else None),
        ("Challenge", header.options.get("challenge")),
        ("Suite", header.suite_digest),
        ("Catalogue", header.catalogue_digest),
    ]
    return [(name, str(value)) for name, value in facts if value]


def _shard(shard: Mapping[str, Any]) -> str:
    return f"shard {shard['number']}/{shard['count']} of {shard['planned']:,}"


def expected_by(header: Header) -> str:
    """Return where expected values come from, such as `the cases, else numpy`."""
    if header.against == header.backend:
        return "the cases alone: a backend is never compared with itself"
    suites = str(header.options.get("against", "auto")) == "auto"
    sources = (_source(name, suites=suites) for name in header.against.split(", else "))
    return ", else ".join(["the cases", *sources])


def recording_of(header: Header) -> str | None:
    """Return the version of DirectML that expected values were recorded on.

    The version is part of a source such as `recording:directml-1.15.4.dmlrec`; None without one.
    """
    for name in header.against.split(", else "):
        recording = _RECORDING.match(name)
        if recording is not None:
            return recording[1]
    return None


def _source(name: str, *, suites: bool) -> str:
    recording = _RECORDING.match(name)
    if recording is None:
        return name
    whose = "the suite's" if suites else "a"
    return f"{whose} recording of DirectML {recording[1]}"
