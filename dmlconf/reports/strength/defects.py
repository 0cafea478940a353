"""Report the strength figures "by defect" and "by case": which injected defects cases notice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import dmlconf
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted
from dmlconf.reports.markdown_text import table
from dmlconf.reports.strength.cases import case_data, case_lines, case_sentence, case_share
from dmlconf.reports.strength.figure import Figure, FigureKind, bullets, too_low
from dmlconf.reports.terminal_text import plain_table, styled
from dmlconf.strength.measure import Mutant, Strength, Tally
from dmlconf.strength.tallies import share

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "DEFECTS",
    "OperatorStrength",
    "closing_sentence",
    "operator_strengths",
    "render_json",
    "render_markdown",
    "render_table",
    "survivors",
]

_HEADINGS: Final = ("Operator", "Injected", "Caught", "Share", "Within", "Pairs", "Refused")
_LONG: Final = "Pairs"
"""The column that a terminal omits, so that the names of operators fit."""

_LEGEND: Final = (
    "- Injected: kinds of defect (of an output and data type) that a rule forbids in some case, or "
    "that the data of every case hide.",
    "- Caught: those that at least one case fails for.",
    "- Within: kinds of defect that stay within the rules in every case.",
    "- Pairs: of the pairs of case and forbidden defect, those where this very case fails.",
    "- Refused: legitimate differences, such as another order of a sum, that fail a case.",
)


@dataclass(frozen=True, slots=True)
class OperatorStrength:
    """An operator's row of the table.

    Attributes:
        injected: how many mutants the suite should catch (`Tally.outside`).
        caught: how many of them at least one case catches.
        within: how many mutants the suite need not catch, since the rules permit them.
        cases_injected: how many pairs of a case's output and a defect break the output's rule.
        cases_caught: in how many of these pairs the case fails.
        refused: how many pairs of a case and a legitimate difference fail.
    """

    operator: str
    injected: int
    caught: int
    within: int
    cases_injected: int
    cases_caught: int
    refused: int


def operator_strengths(strength: Strength) -> list[OperatorStrength]:
    """Return the row of each operator with which a defect was tried, sorted by name."""
    tallies: dict[str, list[Tally]] = {}
    for mutant, tally in sorted(strength.mutants.items()):
        tallies.setdefault(mutant.operator, []).append(tally)
    return [
        OperatorStrength(
            operator=name,
            injected=sum(tally.outside for tally in of_operator),
            caught=sum(tally.detected for tally in of_operator),
            within=sum(not tally.outside for tally in of_operator),
            cases_injected=sum(tally.injected for tally in of_operator),
            cases_caught=sum(tally.caught for tally in of_operator),
            refused=sum(refusal.operator == name for refusal in strength.refused),
        )
        for name, of_operator in tallies.items()
    ]


def _total(rows: list[OperatorStrength]) -> OperatorStrength:
    keys = [key for key in OperatorStrength.__slots__ if key != "operator"]
    return OperatorStrength("total", *(sum(getattr(row, key) for row in rows) for key in keys))


def survivors(strength: Strength) -> list[tuple[Mutant, Tally]]:
    """Return the defects that the suite should catch and does not."""
    mutants = sorted(strength.mutants.items())
    return [(mutant, tally) for mutant, tally in mutants if tally.outside and not tally.detected]


def closing_sentence(strength: Strength) -> str:
    """Return one sentence on caught defects, failing legitimate differences, and cases used."""
    total = _total(operator_strengths(strength))
    tried = sum(strength.legitimate.values())
    return (
        f"{total.caught:,} of {total.injected:,} injected defects caught "
        f"({share(total.caught, total.injected):.2f}%); "
        f"{len(strength.refused):,} of {tried:,} legitimate differences fail; "
        f"{strength.cases:,} cases used"
    )


def _cells(row: OperatorStrength) -> list[str]:
    return [
        row.operator,
        f"{row.injected:,}",
        f"{row.caught:,}",
        f"{share(row.caught, row.injected):.1f}%",
        f"{row.within:,}",
        f"{row.cases_caught:,}/{row.cases_injected:,}",
        f"{row.refused:,}",
    ]


def _rows(strength: Strength) -> list[list[str]]:
    rows = operator_strengths(strength)
    return [
        _cells(row) for row in (*rows, _total(rows)) if len(rows) > 1 or row.operator != "total"
    ]


def _remarks(strength: Strength) -> Iterator[str]:
    for mutant, tally in survivors(strength):
        what = f"{mutant.defect} in {mutant.output} ({mutant.data_type})"
        yield f"not caught: {mutant.operator}, {what}, as in {tally.missed}"
    for refusal in strength.refused:
        yield f"fails, but is legitimate: {refusal.difference} in {refusal.case}"
    if strength.unused:
        count = len(strength.unused)
        yield (
            f"{counted(count, 'case')} not used: the right outputs have no "
            f"independent expectation or do not pass, as in {strength.unused[0]}"
        )


def render_table(strength: Strength, *, verbose: bool = False) -> RenderableType:
    """Return the report for the terminal.

    Args:
        verbose: whether to list each kind of defect of each operator.
    """
    from rich.console import Group
    from rich.text import Text

    shown = [index for index, heading in enumerate(_HEADINGS) if heading != _LONG]
    table = plain_table(*(_HEADINGS[index] for index in shown), right=_HEADINGS[1:])
    for row in _rows(strength):
        table.add_row(*(Text(row[index]) for index in shown))
    parts: list[RenderableType] = [table, ""]
    if verbose:
        parts += [_defects_table(strength), ""]
    remarks = [styled(remark, "red") for remark in _remarks(strength)]
    return Group(*parts, *remarks, Text(closing_sentence(strength), "bold"))


def _defects_table(strength: Strength) -> RenderableType:
    from rich.text import Text

    headings = ("Operator", "Defect", "Injected", "Caught", "Within")
    table = plain_table(*headings, right=headings[2:])
    for (operator, defect), tally in _by_defect(strength).items():
        figures = (tally.injected, tally.caught, tally.within)
        table.add_row(Text(operator), styled(defect), *(f"{n:,}" for n in figures))
    return table


def _by_defect(strength: Strength) -> dict[tuple[str, str], Tally]:
    sums: dict[tuple[str, str], Tally] = {}
    for mutant, tally in sorted(strength.mutants.items()):
        of_defect = sums.setdefault((mutant.operator, mutant.defect.partition(",")[0]), Tally())
        of_defect.injected += tally.injected
        of_defect.caught += tally.caught
        of_defect.within += tally.within
    return sums


def render_markdown(strength: Strength) -> str:
    """Return the report as Markdown."""
    lines = [
        "# Strength of the suite",
        "",
        f"{closing_sentence(strength)}.",
        "",
        *_LEGEND,
        "",
        *table(_HEADINGS, _rows(strength), "lr"),
    ]
    remarks = [f"- {printable(remark)}" for remark in _remarks(strength)]
    return "\n".join([*lines, "", *remarks]).rstrip() + "\n"


def render_json(strength: Strength) -> str:
    """Return the report as JSON."""
    rows = operator_strengths(strength)
    total = _total(rows)
    data: dict[str, Any] = {
        "format": 1,
        "dmlconf": dmlconf.__version__,
        "summary": {
            "injected": total.injected,
            "caught": total.caught,
            "within_rules": total.within,
            "cases": strength.cases,
            "cases_injected": total.cases_injected,
            "cases_caught": total.cases_caught,
            "legitimate": sum(strength.legitimate.values()),
            "legitimate_refused": len(strength.refused),
        },
        "operators": [asdict(row) for row in rows],
        "defects": [
            {
                **asdict(mutant),
                "cases_injected": tally.injected,
                "cases_caught": tally.caught,
                "cases_within": tally.within,
                "cases_hidden": tally.hidden,
                "missed": tally.missed,
            }
            for mutant, tally in sorted(strength.mutants.items())
        ],
        "legitimate": [
            {"operator": operator, "difference": name, "tried": tried}
            for (operator, name), tried in sorted(strength.legitimate.items())
        ],
        "refused": [asdict(refusal) for refusal in strength.refused],
        "unused": strength.unused,
    }
    return json.dumps(data, indent=2)


@dataclass(frozen=True, slots=True)
class _DefectFigure(Figure):
    heading: ClassVar[str] = "By case"
    strength: Strength

    def sentences(self) -> Iterator[str]:
        yield closing_sentence(self.strength)
        yield case_sentence(self.strength.noticed)

    def remarks(self) -> Iterator[str]:
        yield from case_lines(self.strength.noticed)

    def markdown(self) -> list[str]:
        return [
            f"## {self.heading}",
            "",
            f"{case_sentence(self.strength.noticed)}.",
            "",
            *bullets(case_lines(self.strength.noticed)),
            "",
            "## By defect",
            "",
            *render_markdown(self.strength).splitlines()[2:],
        ]

    def data(self) -> Mapping[str, Any]:
        """Return the figure by case; `render_json` has the figure by defect."""
        return {"by_case": case_data(self.strength.noticed)}

    def complaints(self, name: str, least: float) -> list[str]:
        if name == "cases":
            return too_low("by case", case_share(self.strength.noticed), least)
        rows = operator_strengths(self.strength)
        complaints = [
            f"{row.operator}: {share(row.caught, row.injected):.2f}% of its defects caught, "
            f"fewer than {least:g}%"
            for row in rows
            if share(row.caught, row.injected) < least
        ]
        if not rows:
            complaints.append("no defect was injected")
        if self.strength.refused:
            complaints.append(f"{len(self.strength.refused):,} legitimate differences fail")
        return complaints


DEFECTS: Final = FigureKind(
    "defects",
    lambda setting: _DefectFigure(setting.injected),
    """\
- By defect: kinds of defects of every operator, output and data type; one case must notice it.
- By case: of the defects that change what a case computes, those that the case notices.""",
    "injected defects",
    usual=True,
    thresholds=("defects", "cases"),
)
