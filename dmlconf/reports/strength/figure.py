"""The base of the reports on a suite's strength: a figure, its kind and how it is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.documents.problems import printable
from dmlconf.engine.against import RecordingAgainst
from dmlconf.judging.judge import Against
from dmlconf.reports.markdown_text import table as markdown_table
from dmlconf.strength.measure import Method, Strength, measure
from dmlconf.strength.parallel import Addable, Measure, measured_in_processes
from dmlconf.strength.sampling import sampled

__all__ = [
    "Figure",
    "FigureKind",
    "Progress",
    "Setting",
    "Table",
    "bullets",
    "of_cases",
    "too_low",
]

Progress = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Shows the progress of a number of cases, and gives a function to call after each case."""

_CHUNK: Final = 100
"""The most cases that a process takes at a time."""

_Result = TypeVar("_Result", bound=Addable)


@dataclass(frozen=True, slots=True)
class Table:
    """A table that shows a figure.

    Attributes:
        left: the headings of columns that are aligned to the left; others are to the right.
        on_pages_only: whether the terminal omits the table.
    """

    headings: Sequence[str]
    rows: Iterable[Sequence[str]]
    left: Sequence[str]
    on_pages_only: bool = False


@dataclass
class Setting:
    """The measured cases, and the options of measuring.

    Attributes:
        models: the selected cases with the tag `model` but not `captured`, even if `plan` lacks
            them.
        sample: the most cases of each operator or, for driver defects, of each pair of defect and
            operator; None for all. Some figures try more if the sample notices too little, and some
            take all (`FigureKind.takes_all`).
        chosen: the names of the measured figures.
        recordings: the recordings from which `injected` took expected values.
    """

    plan: Sequence[PlannedCase]
    models: Sequence[PlannedCase]
    suite_paths: Sequence[Path]
    jobs: int
    sample: int | None
    seed: int
    chosen: Sequence[str]
    progress: Progress
    recordings: Sequence[RecordingAgainst] = field(default=(), init=False)

    @cached_property
    def injected(self) -> Strength:
        """The tallies of injected defects and perturbations, measured when first used.

        Raises:
            InvalidFilesError: a case cannot be built, or is not valid.
            BackendError: a recording of the suite cannot be read, or a process died.
        """
        cases = sampled(self.plan, self.sample, self.seed)
        method = Method("defects" in self.chosen, "perturbations" in self.chosen, self.seed)
        strength, self.recordings = self.measured(
            partial(of_cases, measure, method=method), Strength(), cases
        )
        return strength

    def measured(
        self,
        measure: Measure[_Result],
        result: _Result,
        cases: Sequence[PlannedCase],
        *,
        chunk: int = _CHUNK,
    ) -> tuple[_Result, Sequence[RecordingAgainst]]:
        """Return the tally of some cases, and the recordings that give expected values.

        Args:
            measure: measures a chunk of cases, as for `measured_in_processes`.
            result: the tally to which the tallies of all chunks are added.
            chunk: the most cases that a process takes at a time.

        Raises:
            InvalidFilesError: a case cannot be built, or is not valid.
            BackendError: a recording of the suite cannot be read, or a process died.
        """
        with self.progress(len(cases)) as advance:
            return measured_in_processes(
                measure,
                result,
                cases,
                self.suite_paths,
                jobs=self.jobs,
                chunk=chunk,
                advance=advance,
            )


def of_cases(
    measure: Callable[..., _Result], plan: Sequence[PlannedCase], against: Against, **options: Any
) -> _Result:
    """Build the planned cases, and return what a function measures with them.

    Raises:
        InvalidFilesError: a case cannot be built, or is not valid.
    """
    return measure(map(valid_case, plan), against, **options)


class Figure(ABC):
    """A figure that was measured; pages have it below `heading`, such as `By graph`."""

    heading: ClassVar[str]

    @abstractmethod
    def sentences(self) -> Iterator[str]:
        """Yield the result, in one or more sentences."""

    def table(self) -> Table | None:
        """Return the figure's table; None if it has none."""
        return None

    def lacks(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield lists of what the suite lacks: the heading and the lines of each."""
        yield from ()

    def remarks(self) -> Iterator[str]:
        """Yield a line for each thing that the suite lacks."""
        for _, lines in self.lacks():
            yield from lines

    def markdown(self) -> list[str]:
        """Return the lines of the figure's section of a page in Markdown."""
        page, table = [f"## {self.heading}", ""], self.table()
        if table is not None:
            align = "".join("l" if each in table.left else "r" for each in table.headings)
            page += [*markdown_table(table.headings, table.rows, align), ""]
        for heading, lines in self.lacks():
            items = bullets(lines)
            page += [f"{heading}:", "", *items, ""] if items else []
        return page

    @abstractmethod
    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON, by the names of its parts."""

    @abstractmethod
    def complaints(self, name: str, least: float) -> list[str]:
        """Return sentences on parts of the figure below the percentage `least`.

        Some figures also complain of legitimate differences that fail.

        Args:
            name: the name of the threshold, one of `FigureKind.thresholds`.
        """


def too_low(name: str, percentage: float, least: float) -> list[str]:
    """Return one sentence if a figure's percentage is below `least`, otherwise none."""
    return [f"{name}: {percentage:.2f}%, less than {least:g}%"] if percentage < least else []


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A figure that can be measured.

    Attributes:
        name: the name that --figure takes.
        introduction: what the figure is, as items of a list in Markdown.
        subject: what the figure counts, for the message that it was not measured.
        usual: whether it is measured if the user names no figure.
        graphs_only: whether it counts only graphs.
        takes_all: whether it takes all cases instead of a sample.
        thresholds: the names that --fail-under takes for the figure; empty if only `name`.
    """

    name: str
    measure: Callable[[Setting], Figure]
    introduction: str
    subject: str
    usual: bool = False
    graphs_only: bool = False
    takes_all: bool = False
    thresholds: tuple[str, ...] = ()


def bullets(lines: Iterable[str]) -> list[str]:
    """Return lines as the items of a list in Markdown."""
    return [f"- {printable(line)}" for line in lines]
