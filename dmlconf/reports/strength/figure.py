"""Figures of a suite's strength: the parts that measuring and reporting them share.

Each figure has a module here that ends with its `FigureKind`, and `measurement.FIGURES` lists them.
A new figure is a new module and a line there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.documents.problems import printable
from dmlconf.engine.against import RecordingAgainst
from dmlconf.judging.judge import Against
from dmlconf.strength.measure import Method, Strength, measure
from dmlconf.strength.parallel import Addable, Measure, measured_in_processes
from dmlconf.strength.sampling import sampled

__all__ = ["Figure", "FigureKind", "Progress", "Setting", "Table", "bullets"]

Progress = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Shows progress over a number of cases; each call of what it yields counts one case."""

_CHUNK: Final = 100
"""How many cases a process takes at a time."""

_Result = TypeVar("_Result", bound=Addable)


@dataclass(frozen=True, slots=True)
class Table:
    """A table that shows a figure.

    Attributes:
        headings: the headings of the columns.
        rows: the cells of each row.
        left: the headings of columns that are aligned to the left; the others are aligned to the
            right.
    """

    headings: Sequence[str]
    rows: Iterable[Sequence[str]]
    left: Sequence[str]


@dataclass
class Setting:
    """The cases that are measured, and the options of measuring.

    Attributes:
        plan: the cases.
        models: the cases among them that have the tag `model`.
        suite_paths: where the suite was loaded from.
        jobs: how many processes measure.
        sample: how many cases at most of each operator, and of each driver defect; None for all.
        seed: the seed of all random choices.
        chosen: the names of the figures that are measured.
        progress: shows how many cases are measured.
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
        """The injected defects and perturbations that cases notice; measured on first use only."""
        cases = sampled(self.plan, self.sample, self.seed)
        method = Method("defects" in self.chosen, "perturbations" in self.chosen, self.seed)
        strength, self.recordings = self.measured(_Injection(method), Strength(), cases)
        return strength

    def measured(
        self,
        measure: Measure[_Result],
        result: _Result,
        cases: Sequence[PlannedCase],
        *,
        chunk: int = _CHUNK,
    ) -> tuple[_Result, Sequence[RecordingAgainst]]:
        """Return the tally of some cases, and the recordings that gave expected values.

        Args:
            measure: measures a chunk of cases, as for `measured_in_processes`.
            result: an empty tally, to which those of all cases are added.
            cases: the cases.
            chunk: how many cases a process takes at a time.
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


@dataclass(frozen=True, slots=True)
class _Injection:
    """Measures injected defects and perturbations of some cases."""

    method: Method

    def __call__(self, plan: Sequence[PlannedCase], against: Against) -> Strength:
        return measure(map(valid_case, plan), against, method=self.method)


class Figure(Protocol):
    """A figure that was measured."""

    def sentences(self) -> Iterator[str]:
        """Yield the result, in a sentence or two."""
        ...

    def table(self) -> Table | None:
        """Return a table for the terminal; None for none."""
        ...

    def remarks(self) -> Iterator[str]:
        """Yield a line for each thing that the suite lacks by this figure."""
        ...

    def markdown(self) -> list[str]:
        """Return the figure's part of a page, ending with an empty line."""
        ...

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON, by the names of its parts."""
        ...

    def complaints(self, name: str, least: float) -> list[str]:
        """Return a sentence for each part of the figure that is below a percentage.

        Args:
            name: the name of the threshold, one of `FigureKind.thresholds`.
            least: the percentage.
        """
        ...


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A figure that can be measured.

    Attributes:
        name: the name, as --figure takes it.
        measure: measures the figure.
        introduction: what the figure is, as an item of a list on a page.
        usual: whether it is measured if the user names no figure.
        graphs_only: whether it counts only graphs.
        takes_all: whether it needs all cases, and takes no sample of them.
        subject: what the figure counts, for the message about a threshold of a figure that was not
            measured.
        thresholds: the names that --fail-under takes.
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
