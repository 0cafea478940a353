"""Report all figures of a suite's strength: for the terminal, in Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dmlconf.reports.strength import defects
from dmlconf.reports.strength.deviations import DEVIATIONS
from dmlconf.reports.strength.drivers import DRIVERS
from dmlconf.reports.strength.expectations import EXPECTATIONS
from dmlconf.reports.strength.figure import Figure, FigureKind, Setting
from dmlconf.reports.strength.graphs import GRAPHS
from dmlconf.reports.strength.perturbations import PERTURBATIONS
from dmlconf.reports.strength.rewrites import REWRITES
from dmlconf.reports.strength.sizes import SIZES
from dmlconf.reports.terminal_text import plain_table, styled
from dmlconf.strength.drivers.figure import tells_few
from dmlconf.strength.measure import Strength

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "FIGURES",
    "Measurement",
    "measured",
    "render_json",
    "render_markdown",
    "render_table",
    "sentences",
]

FIGURES: Final[Mapping[str, FigureKind]] = {
    kind.name: kind
    for kind in (
        defects.DEFECTS,
        PERTURBATIONS,
        DRIVERS,
        SIZES,
        GRAPHS,
        REWRITES,
        EXPECTATIONS,
        DEVIATIONS,
    )
}
"""All figures, by name, in the order of reports."""

_LEAD: Final = """\
A suite that passes proves no more than it would have noticed. So known defects are injected into
right outputs, and what is noticed is counted; what is not noticed is listed below, by operator."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures that were measured.

    Attributes:
        strength: the tallies of injected defects and perturbations; empty if neither was chosen.
        sample: as in `Setting`.
    """

    figures: Mapping[str, Figure]
    strength: Strength
    seed: int = 0
    sample: int | None = None

    def complaints(self, threshold: str, least: float) -> list[str]:
        """Return the complaints of a figure, or one sentence if it was not measured.

        Args:
            threshold: the name of a figure, or one of its `FigureKind.thresholds`.
        """
        kind = next(
            kind for kind in FIGURES.values() if threshold in (kind.thresholds or (kind.name,))
        )
        figure = self.figures.get(kind.name)
        if figure is None:
            return [f"{kind.subject} were not measured"]
        return figure.complaints(threshold, least)


def measured(setting: Setting) -> Measurement:
    """Measure the chosen figures.

    Raises:
        InvalidFilesError: a case cannot be built, or is not valid.
        BackendError: a recording of the suite cannot be read.
    """
    kinds = [kind for kind in FIGURES.values() if kind.name in setting.chosen]
    figures = {kind.name: kind.measure(setting) for kind in kinds}
    injected = {"defects", "perturbations"} & set(figures)
    strength = setting.injected if injected else Strength()
    return Measurement(figures, strength, setting.seed, setting.sample)


def sentences(measurement: Measurement) -> Iterator[str]:
    """Yield the sentences of each figure, and one on the sample if a figure took one."""
    for figure in measurement.figures.values():
        yield from figure.sentences()
    if measurement.sample is not None and not all(
        FIGURES[name].takes_all for name in measurement.figures
    ):
        cases = "case" if measurement.sample == 1 else "cases"
        few = "fewer than three" if tells_few(measurement.sample) else "none"
        yield (
            f"a sample: at most {measurement.sample:,} {cases} of each operator and of each driver "
            f"defect, seed {measurement.seed}"
            + (
                f"; unexplained driver defects that {few} of these notice, on all"
                if DRIVERS.name in measurement.figures
                else ""
            )
            + (
                "; ten times as many of operators that notice too few spoiled expectations"
                if EXPECTATIONS.name in measurement.figures
                else ""
            )
        )


def render_table(measurement: Measurement, *, verbose: bool = False) -> RenderableType:
    """Return the figures for the terminal.

    Args:
        verbose: whether to list what the suite lacks by each figure, and each kind of defect.
    """
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    has_defects = defects.DEFECTS.name in measurement.figures
    if has_defects:
        parts += [defects.render_table(measurement.strength, verbose=verbose), ""]
    for figure in measurement.figures.values():
        cells = figure.table()
        if cells is None or cells.on_pages_only:
            continue
        table = plain_table(*cells.headings, right=set(cells.headings) - set(cells.left))
        for row in cells.rows:
            table.add_row(*map(Text, row))
        parts += [table, ""]
    if verbose:
        remarks = (line for figure in measurement.figures.values() for line in figure.remarks())
        parts += [styled(remark) for remark in remarks]
    closing = list(sentences(measurement))
    parts += [Text(one, "bold") for one in closing[1 if has_defects else 0 :]]
    return Group(*parts)


def render_markdown(measurement: Measurement) -> str:
    """Return the figures as Markdown. The two sections of `defects`, the longest, come last."""
    figures = dict(measurement.figures)
    by_defect = figures.pop(defects.DEFECTS.name, None)
    lines = [
        "# Strength of the suite",
        "",
        _LEAD,
        "",
        *(f"- {one[0].upper()}{one[1:]}." for one in sentences(measurement)),
        "",
        f"`{_command(measurement)}` measures this anew.",
        "",
        *(kind.introduction for kind in FIGURES.values()),
        "",
    ]
    for figure in [*figures.values(), *([] if by_defect is None else [by_defect])]:
        lines += figure.markdown()
    return "\n".join(lines).rstrip() + "\n"


def _command(measurement: Measurement) -> str:
    """Return the command that measures the same figures of the bundled suite."""
    usual = [kind.name for kind in FIGURES.values() if kind.usual]
    names = list(measurement.figures)
    options = [] if names == usual else [f"--figure {name}" for name in names]
    if measurement.sample is not None:
        options.append(f"--sample {measurement.sample}")
    if measurement.seed:
        options.append(f"--seed {measurement.seed}")
    return " ".join(
        ["dmlconf strength cases/ -j auto", *options, "--report markdown:docs/strength.md"]
    )


def render_json(measurement: Measurement) -> str:
    """Return the figures as JSON."""
    data: dict[str, Any] = json.loads(defects.render_json(measurement.strength))
    data["seed"] = measurement.seed
    data["sample"] = measurement.sample
    for figure in measurement.figures.values():
        data.update(figure.data())
    return json.dumps(data, indent=2)
