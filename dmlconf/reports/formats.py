"""The formats that `--report` offers for each kind of report, and how the option is read.

A new format needs an entry here, and a function that renders it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from dmlconf.documents.problems import nearest
from dmlconf.run_log.log import RunLog

if TYPE_CHECKING:
    from dmlconf.certification.findings import Verification
    from dmlconf.coverage.combinations.measure import CombinationCoverage
    from dmlconf.coverage.questions import QuestionCoverage
    from dmlconf.excuses.known_faults import KnownFault
    from dmlconf.reports.comparisons.changes import Compared
    from dmlconf.reports.comparisons.scoreboard import Scoreboard
    from dmlconf.reports.strength.measurement import Measurement
    from dmlconf.reports.suites.coverage import Coverage

__all__ = [
    "COMBINATION_FORMATS",
    "COMPARISON_FORMATS",
    "COVERAGE_FORMATS",
    "FAULT_FORMATS",
    "QUESTION_FORMATS",
    "RUN_FORMATS",
    "SCOREBOARD_FORMATS",
    "STRENGTH_FORMATS",
    "VERIFICATION_FORMATS",
    "Format",
    "Formats",
    "Report",
    "formats",
    "late",
    "parse_report",
    "rendered",
]

Content = TypeVar("Content")
"""The type of what a report is about: a run, a comparison, a suite's coverage."""


@dataclass(frozen=True, slots=True)
class Format(Generic[Content]):
    """A format of reports.

    Attributes:
        render: returns the text or, for reports of any length, yields it in parts.
        publish: writes the report to the format's own destination, such as GitHub; returns a
            warning or an empty text. None for a format that takes a file.
        destination: what messages call the destination of `publish`.
    """

    name: str
    render: Callable[[Content], str | Iterator[str]]
    publish: Callable[[Content], str] | None = None
    destination: str = ""

    @property
    def takes_file(self) -> bool:
        """Whether the report goes to a file or to standard output, and not to `publish`."""
        return self.publish is None

    def parts(self, content: Content) -> Iterator[str]:
        """Render the report, and return its parts."""
        rendered = self.render(content)
        return iter((rendered,)) if isinstance(rendered, str) else rendered

    def text(self, content: Content) -> str:
        """Return the report as one text."""
        return "".join(self.parts(content))


Formats = Mapping[str, Format[Content]]


@dataclass(frozen=True, slots=True)
class Report(Generic[Content]):
    """A report that an option `--report` asks for.

    Attributes:
        file: the file to write; None for standard output or the format's own destination.
    """

    format: Format[Content]
    file: Path | None

    @property
    def option(self) -> str:
        """The option that asks for the report."""
        return f"--report {self.format.name}" + (f":{self.file}" if self.file else "")

    @property
    def to_output(self) -> bool:
        """Whether the report goes to standard output."""
        return self.file is None and self.format.takes_file


def formats(*each: Format[Content]) -> Formats[Content]:
    """Return formats by name, in the order given."""
    return {one.name: one for one in each}


def late(module: str, function: str = "render") -> Callable[[Any], Any]:
    """Return a function that imports a module of `dmlconf.reports` and calls its `function`."""

    def call(content: Any) -> Any:
        return getattr(import_module(f"dmlconf.reports.{module}"), function)(content)

    return call


def rendered(module: str, *names: str) -> Formats[Any]:
    """Return formats that one module renders: `json` by its function `render_json`, and so on."""
    return formats(*(Format(name, late(module, f"render_{name}")) for name in names))


RUN_FORMATS: Final[Formats[RunLog]] = formats(
    Format("html", late("runs.html", "render_parts")),
    Format("json", late("runs.json_report", "render_parts")),
    Format("junit", late("runs.junit")),
    Format("markdown", late("runs.markdown")),
    Format("svg", late("runs.picture", "render_svg")),
    Format("text", late("runs.picture", "render_text")),
    Format(
        "github",
        late("runs.github"),
        publish=late("runs.github", "publish"),
        destination="the step's log and summary",
    ),
)

SCOREBOARD_FORMATS: Final[Formats[Scoreboard]] = rendered(
    "comparisons.scoreboard", "html", "json", "markdown"
)

COMPARISON_FORMATS: Final[Formats[Sequence[Compared]]] = {
    **rendered("comparisons.html", "html"),
    **rendered("comparisons.changes", "json", "markdown"),
}

COVERAGE_FORMATS: Final[Formats[Coverage]] = rendered("suites.coverage", "json", "markdown")

COMBINATION_FORMATS: Final[Formats[Sequence[CombinationCoverage]]] = rendered(
    "suites.combinations", "json", "markdown"
)

QUESTION_FORMATS: Final[Formats[Sequence[QuestionCoverage]]] = rendered(
    "suites.questions", "json", "markdown"
)

STRENGTH_FORMATS: Final[Formats[Measurement]] = rendered("strength.measurement", "json", "markdown")

VERIFICATION_FORMATS: Final[Formats[Verification]] = rendered("verification", "json", "markdown")

FAULT_FORMATS: Final[Formats[Sequence[KnownFault]]] = rendered("faults", "json", "markdown")


def parse_report(option: str, known: Formats[Content]) -> Report[Content]:
    """Return the report that `FORMAT[:FILE]` asks for.

    Raises:
        ValueError: there is no such format, it takes no file although one is named, or no file
            follows the colon.
    """
    name, colon, file = option.partition(":")
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}? " if near else ""
        listed = f"the formats are {', '.join(known)}"
        raise ValueError(f"there is no report format {name!r}: {hint}{listed}")
    chosen = known[name]
    if colon and not chosen.takes_file:
        raise ValueError(f"{name} takes no file: it goes to {chosen.destination}")
    if colon and not file:
        raise ValueError(f"{option!r} names no file after the colon")
    return Report(chosen, Path(file) if file else None)
