"""The page docs/findings.md in Markdown: known mistakes of other runtimes, and totals of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dmlconf.excuses.findings import Finding, Findings
from dmlconf.reports.markdown_text import cell, code, table

__all__ = ["findings_page"]

_BEGIN = """\
# Findings in other runtimes

What the suite found in runtimes other than DirectML. Each is reduced to a case that fails, and to a
few lines of the runtime's own API. What a specification leaves open is not here:
[targets](targets.md).

`schemas/findings/` has this page's content as data. A case that fails as a finding says stays
`failed`, and its reason begins with the finding's name: `known finding where-loses-the-sign-of-zero
(...): 1 of 7 elements of OutputTensor differs`. Findings about wrong values explain a failure only
if each wrong element is what the formula of a finding gives, such as 2147483647 for 2147483647 + 1,
or fits the description of one. A finding about refusals explains the refusals with its message. A
failure that names no finding is new: a fault of the runtime that is not listed, or a mistake of
dmlconf.
"""


def findings_page(runtimes: Iterable[Findings]) -> str:
    """Return the page of the findings in all runtimes."""
    every = list(runtimes)
    lines = [_BEGIN, *_runs(every)]
    for each in every:
        lines += ["", f"## {each.title}", ""]
        lines += [each.note, ""] if each.note else []
        lines += table(
            ("What it does", "Name", "A case", "In a few lines"),
            (
                (cell(_title(one)), code(one.name), cell(code(one.example)), cell(one.code))
                for one in each.findings
            ),
        )
    return "\n".join(lines).rstrip() + "\n"


def _title(finding: Finding) -> str:
    needed = finding.instructions
    return f"{finding.title}, on processors with {needed}" if needed else finding.title


def _runs(runtimes: Iterable[Findings]) -> Iterator[str]:
    numbers = ("cases", "passed", "waived", "declined", "failed", "explained")
    yield from table(
        (
            "Runtime",
            "Cases",
            "Passed",
            "Waived",
            "Not expressible",
            "Failed",
            "of these, explained",
        ),
        (
            (
                f"{each.title}: {run['what']}",
                *(f"{run[name]:,}" if name in run else "" for name in numbers),
            )
            for each in runtimes
            for run in each.runs
        ),
        "lr",
    )
