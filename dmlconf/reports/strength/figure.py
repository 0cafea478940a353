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
"""Shows how much of so many cases is done; within it, each call counts one."""

_CHUNK: Final = 100
"""Cases that a process takes at a time."""

_Result = TypeVar("_Result", bound=Addable)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a figure.

    Attributes:
        headings: the headings of the columns.
        rows: their cells.
        left: the headings whose columns are aligned to the left; others to the right.
    """

    headings: Sequence[str]
    rows: Iterable[Sequence[str]]
    left: Sequence[str]


@dataclass
class Setting:
    """What is measured, and how.

    Attributes:
        plan: the cases.
        models: those of them that have the tag `model`.
        suite_paths: where the suite was loaded from.
        jobs: how many processes measure.
        sample: how many cases at most of each operator, and of each driver defect; None for all.
        seed: the seed of all random choices.
        chosen: the names of the figures that are measured.
        progress: shows how far it is.
        recordings: those that gave expected values of what `injected` has.
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
        """What cases notice of injected defects and perturbations, of which each is judged once."""
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
        """Return what some of the cases notice, and the recordings that gave expected values.

        Args:
            measure: measures some of them, as `measured_in_processes` takes it.
            result: what no case notices; the others are added to it.
            cases: the cases.
            chunk: how many a process takes at a time.
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
        """Yield what was measured, in a sentence or two."""
        ...

    def table(self) -> Table | None:
        """Return a table for the terminal; None for none."""
        ...

    def remarks(self) -> Iterator[str]:
        """Yield a line for all that is missing."""
        ...

    def markdown(self) -> list[str]:
        """Return the figure's part of a page, ending with an empty line."""
        ...

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON, by the names of its parts."""
        ...

    def complaints(self, name: str, least: float) -> list[str]:
        """Return what is below a percentage, in a sentence each.

        Args:
            name: which of the figure's thresholds it is.
            least: the percentage.
        """
        ...


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A figure that can be measured.

    Attributes:
        name: the name, as --figure takes it.
        measure: measures it.
        introduction: what it is, for a page: an item of a list.
        usual: whether it is measured unless others are asked for.
        graphs_only: whether only graphs count.
        takes_all: whether it needs all cases, and takes no sample of them.
        subject: what is missing where a threshold names it and it was not measured.
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
