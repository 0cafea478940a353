"""The formats that `--report` knows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from dmlconf.documents.problems import nearest
from dmlconf.run_log.log import RunLog

__all__ = ["FORMATS", "GITHUB", "parse_report", "rendered"]

GITHUB: Final = "github"
"""The format for GitHub Actions only."""

Render = Callable[[RunLog], str]


def _late(module: str, function: str = "render") -> Render:
    """Return a function that imports its module when it is called."""

    def render(log: RunLog) -> str:
        text: str = getattr(import_module(f"dmlconf.reports.{module}"), function)(log)
        return text

    return render


FORMATS: Final[Mapping[str, Render]] = {
    "html": _late("html"),
    "json": _late("json_report"),
    "junit": _late("junit"),
    "markdown": _late("markdown"),
    "svg": _late("picture", "render_svg"),
    "text": _late("picture", "render_text"),
    "github": _late("github"),
}
"""Functions from a run log to text, by the name of their format."""


def rendered(log: RunLog, name: str) -> str | Iterator[str]:
    """Return the report of a format; JSON, which has each verdict in full, in parts."""
    if name == "json":
        from dmlconf.reports.json_report import render_parts

        return render_parts(log)
    return FORMATS[name](log)


def parse_report(option: str, formats: Collection[str] = FORMATS) -> tuple[str, Path | None]:
    """Return format and file of `FORMAT[:FILE]`; None for standard output.

    Raises:
        ValueError: there is no such format, or no file after the colon.
    """
    name, colon, file = option.partition(":")
    if name not in formats:
        near = nearest(name, formats)
        hint = f"did you mean {near}? " if near else ""
        known = f"the formats are {', '.join(formats)}"
        raise ValueError(f"there is no report format {name!r}: {hint}{known}")
    if name == GITHUB and colon:
        raise ValueError("github takes no file: it goes to the step's log and summary")
    if colon and not file:
        raise ValueError(f"{option!r} names no file after the colon")
    return name, Path(file) if file else None
