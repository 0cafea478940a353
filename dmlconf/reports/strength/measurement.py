"""All figures of a suite's strength together, as a table for the terminal, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dmlconf.documents.problems import printable
from dmlconf.reports.markdown_text import table as markdown_table
from dmlconf.reports.strength import defects as report
from dmlconf.reports.strength.cases import case_data, case_lines, case_sentence
from dmlconf.reports.strength.drivers import (
    driver_data,
    driver_lines,
    driver_sentence,
    report_sentence,
)
from dmlconf.reports.strength.expectations import (
    EXPECTATION_HEADINGS,
    expectation_data,
    expectation_lines,
    expectation_sentence,
    expectation_table,
    permitted_lines,
)
from dmlconf.reports.strength.perturbations import (
    perturbation_data,
    perturbation_lines,
    perturbation_sentence,
    perturbation_table,
)
from dmlconf.reports.strength.sizes import (
    SIZE_HEADINGS,
    size_data,
    size_lines,
    size_sentence,
    size_table,
)
from dmlconf.strength.drivers.figure import DriverFigure
from dmlconf.strength.expectations import ExpectationFigure
from dmlconf.strength.graph_figure import (
    GRAPH_HEADINGS,
    GraphFigure,
    graph_data,
    graph_lines,
    graph_sentence,
    graph_table,
)
from dmlconf.strength.measure import Strength
from dmlconf.strength.rewrite_figure import (
    REWRITE_HEADINGS,
    RewriteFigure,
    rewrite_data,
    rewrite_lines,
    rewrite_sentence,
    rewrite_table,
)
from dmlconf.strength.tallies import CaseTally

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Measurement", "render_json", "render_markdown", "render_table", "sentences"]

_PERTURBATION_HEADINGS: Final = ("Perturbation", "Operators", "Tried", "Caught", "Share", "Target")

_LEAD: Final = """\
A suite that passes proves no more than it would have noticed. So known defects are injected into
right outputs, and what is noticed is counted; what is not noticed is listed below, by operator."""

_INTRODUCTION: Final = """\
- By defect: kinds of defects of every operator, output and data type; one case must notice it.
- By case: of the cases that run a defect's code, those that notice it.
- By perturbation: one element of each output of each case, at a random place, is changed a
  little; that very case must notice it. Elements that the documentation leaves undefined are left
  alone; elements of which a rule permits any value count as not noticed.
- By driver defect: a catalogue of what drivers do wrong, `dmlconf/strength/drivers/defects/`, with
  the public report that each is rebuilt from. Each is tried on the cases that meet its conditions,
  and caught if it is in every operator that it names.
- By defect of size: a catalogue of what kernels do wrong at the sizes of real layers only,
  `dmlconf/strength/drivers/sizes/`: tiles at the edge, remainders, sums in FLOAT16, workgroups,
  strides, indices, owned weights. Each is tried on cases with the tag `model`, and each case in
  which it changes an output must notice it.
- By expectation: each output that a case states or that was recorded is spoiled likewise, while the
  backend returns what the reference computes; the case must fail. What the source of a rule permits
  is counted apart, with that source.
- By graph: what graph compilers do wrong, at every place of every graph: edges that read another
  buffer, dropped nodes, stale constants, roundings to FLOAT16, swapped inputs, and nodes with a
  defect. Each that changes an output must be noticed by that very graph. What a right compiler may
  do otherwise, such as holding FLOAT32 between nodes, is tried too, and must not fail.
- By rewrite: a catalogue of what graph compilers do to graphs, `schemas/rewrites.yaml`, with the
  conditions under which it is right. Each has a graph in which the rewritten graph passes, and each
  condition one in which it does not hold and the rewritten graph fails."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures measured; None for those not requested.

    Attributes:
        strength: injected defects and perturbations.
        drivers: driver defects, or None.
        defects: whether defects were injected.
        perturbations: whether elements were perturbed.
        seed: of all random choices.
        sample: how many cases of each operator and driver defect were tried; None for all.
        sizes: defects of size, or None.
        graphs: defects of graph compilers, or None.
        expectations: spoiled expectations, or None.
        rewrites: rewrites of graph compilers, or None.
    """

    strength: Strength
    drivers: DriverFigure | None
    defects: bool = True
    perturbations: bool = True
    seed: int = 0
    sample: int | None = None
    sizes: DriverFigure | None = None
    graphs: GraphFigure | None = None
    expectations: ExpectationFigure | None = None
    rewrites: RewriteFigure | None = None

    @property
    def noticed(self) -> Mapping[str, CaseTally]:
        """What each case noticed of injected defects."""
        return self.strength.noticed


def sentences(measurement: Measurement) -> Iterator[str]:
    """Yield one sentence for each figure."""
    if measurement.defects:
        yield report.closing_sentence(measurement.strength)
        yield case_sentence(measurement.noticed)
    if measurement.perturbations:
        yield perturbation_sentence(measurement.strength.perturbed, measurement.seed)
    if measurement.drivers is not None:
        yield driver_sentence(measurement.drivers)
        if measurement.drivers.by_report:
            yield report_sentence(measurement.drivers)
    if measurement.sizes is not None:
        yield size_sentence(measurement.sizes)
    if measurement.graphs is not None:
        yield graph_sentence(measurement.graphs)
    if measurement.rewrites is not None:
        yield rewrite_sentence(measurement.rewrites)
    if measurement.expectations is not None:
        yield expectation_sentence(measurement.expectations, measurement.seed)
    if measurement.sample is not None:
        yield (
            f"a sample: at most {measurement.sample:,} cases of each operator and of each driver "
            f"defect, seed {measurement.seed}"
            + (
                "; unexplained driver defects that these do not notice, on all"
                if measurement.drivers
                else ""
            )
        )


def _remarks(measurement: Measurement) -> Iterator[str]:
    if measurement.defects:
        yield from case_lines(measurement.noticed)
    if measurement.perturbations:
        yield from perturbation_lines(measurement.strength.perturbed)
    if measurement.drivers is not None:
        yield from driver_lines(measurement.drivers)
    if measurement.sizes is not None:
        yield from size_lines(measurement.sizes)
    if measurement.graphs is not None:
        yield from graph_lines(measurement.graphs)
    if measurement.rewrites is not None:
        yield from rewrite_lines(measurement.rewrites)
    if measurement.expectations is not None:
        yield from permitted_lines(measurement.expectations)
        yield from expectation_lines(measurement.expectations)


def render_table(measurement: Measurement, *, verbose: bool = False) -> RenderableType:
    """Return the figures for the terminal; verbose with a line for all that is missing."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = []
    if measurement.defects:
        parts += [report.render_table(measurement.strength, verbose=verbose), ""]
    if measurement.perturbations:
        table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
        for heading in _PERTURBATION_HEADINGS:
            left = heading in ("Perturbation", "Operators")
            table.add_column(heading, justify="left" if left else "right", overflow="fold")
        for row in perturbation_table(measurement.strength.perturbed):
            table.add_row(*map(Text, row))
        parts += [table, ""]
    if measurement.graphs is not None:
        table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
        for heading in GRAPH_HEADINGS:
            left = heading == GRAPH_HEADINGS[0]
            table.add_column(heading, justify="left" if left else "right", overflow="fold")
        for cells in graph_table(measurement.graphs):
            table.add_row(*map(Text, cells))
        parts += [table, ""]
    if measurement.rewrites is not None:
        table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
        for heading in REWRITE_HEADINGS:
            left = heading in ("Rewrite", "Kind", "Right")
            table.add_column(heading, justify="left" if left else "right", overflow="fold")
        for cells in rewrite_table(measurement.rewrites):
            table.add_row(*map(Text, cells))
        parts += [table, ""]
    if measurement.expectations is not None:
        table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
        for heading in EXPECTATION_HEADINGS:
            left = heading == EXPECTATION_HEADINGS[0]
            table.add_column(heading, justify="left" if left else "right", overflow="fold")
        for line in expectation_table(measurement.expectations):
            table.add_row(*map(Text, line))
        parts += [table, ""]
    remarks = list(_remarks(measurement)) if verbose else []
    parts += [Text(printable(remark)) for remark in remarks]
    closing = list(sentences(measurement))
    parts += [Text(one, "bold") for one in closing[1 if measurement.defects else 0 :]]
    return Group(*parts)


def render_markdown(measurement: Measurement) -> str:
    """Return the figures as Markdown."""
    lines = [
        "# Strength of the suite",
        "",
        _LEAD,
        "",
        *(f"- {one[0].upper()}{one[1:]}." for one in sentences(measurement)),
        "",
    ]
    lines += [f"`{_command(measurement)}` measures this anew.", "", _INTRODUCTION, ""]
    if measurement.perturbations:
        lines += [
            "## By perturbation",
            "",
        ]
        rows = perturbation_table(measurement.strength.perturbed)
        lines += markdown_table(_PERTURBATION_HEADINGS, rows, "llr")
        lines += ["", "Operators below target:", ""]
        lines += [f"- {printable(o)}" for o in perturbation_lines(measurement.strength.perturbed)]
        lines.append("")
    if measurement.drivers is not None:
        lines += ["## By driver defect", "", "What survives, and the case that is missing:", ""]
        lines += [f"- {printable(one)}" for one in driver_lines(measurement.drivers)]
        lines.append("")
    if measurement.sizes is not None:
        lines += ["## By defect of size", ""]
        lines += markdown_table(SIZE_HEADINGS, size_table(measurement.sizes), "lr")
        lines += ["", "What survives in all cases of an operator that were tried:", ""]
        lines += [f"- {printable(one)}" for one in size_lines(measurement.sizes)]
        lines.append("")
    if measurement.graphs is not None:
        lines += ["## By graph", ""]
        lines += markdown_table(GRAPH_HEADINGS, graph_table(measurement.graphs), "lr")
        unexpected = [f"- {printable(one)}" for one in graph_lines(measurement.graphs)]
        lines += ["", *(["Verdicts that are wrong:", "", *unexpected, ""] if unexpected else [])]
    if measurement.rewrites is not None:
        lines += ["## By rewrite", ""]
        lines += markdown_table(REWRITE_HEADINGS, rewrite_table(measurement.rewrites), "llrlr")
        missing = [f"- {printable(one)}" for one in rewrite_lines(measurement.rewrites)]
        lines += ["", *(["What is missing:", "", *missing, ""] if missing else [])]
    if measurement.expectations is not None:
        lines += ["## By expectation", ""]
        rows = expectation_table(measurement.expectations)
        lines += markdown_table(EXPECTATION_HEADINGS, rows, "lr")
        for heading, each in (
            ("What the source of a rule permits:", permitted_lines(measurement.expectations)),
            ("What is not noticed:", expectation_lines(measurement.expectations)),
        ):
            items = [f"- {printable(one)}" for one in each]
            lines += ["", *([heading, "", *items] if items else [])]
        lines.append("")
    if measurement.defects:
        lines += ["## By case", "", f"{case_sentence(measurement.noticed)}.", ""]
        lines += [f"- {printable(one)}" for one in case_lines(measurement.noticed)]
        lines += ["", "## By defect", ""]
        lines += report.render_markdown(measurement.strength).splitlines()[2:]
    return "\n".join(lines).rstrip() + "\n"


def _command(measurement: Measurement) -> str:
    """Return the command that measures the same of the bundled suite."""
    measured = {
        "defects": measurement.defects,
        "perturbations": measurement.perturbations,
        "drivers": measurement.drivers is not None,
        "sizes": measurement.sizes is not None,
        "graphs": measurement.graphs is not None,
        "rewrites": measurement.rewrites is not None,
        "expectations": measurement.expectations is not None,
    }
    figures = [name for name, chosen in measured.items() if chosen]
    usual = figures == ["defects", "perturbations", "drivers"]
    options = [] if usual else [f"--figure {name}" for name in figures]
    if measurement.sample is not None:
        options.append(f"--sample {measurement.sample}")
    if measurement.seed:
        options.append(f"--seed {measurement.seed}")
    return " ".join(
        ["dmlconf strength cases/ -j auto", *options, "--report markdown:docs/strength.md"]
    )


def render_json(measurement: Measurement) -> str:
    """Return the figures as JSON."""
    data: dict[str, Any] = json.loads(report.render_json(measurement.strength))
    data["seed"] = measurement.seed
    data["sample"] = measurement.sample
    if measurement.defects:
        data["by_case"] = case_data(measurement.noticed)
    if measurement.perturbations:
        data["perturbations"] = perturbation_data(measurement.strength.perturbed, measurement.seed)
    if measurement.drivers is not None:
        data["drivers"] = driver_data(measurement.drivers)
    if measurement.sizes is not None:
        data["sizes"] = size_data(measurement.sizes)
    if measurement.graphs is not None:
        data["graphs"] = graph_data(measurement.graphs)
    if measurement.rewrites is not None:
        data["rewrites"] = rewrite_data(measurement.rewrites)
    if measurement.expectations is not None:
        data["expectations"] = expectation_data(measurement.expectations, measurement.seed)
    return json.dumps(data, indent=2)
