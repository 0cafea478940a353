"""The lines before a run's first case: what is tested against what, and a note on graphs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from dmlconf.cases.model import PlannedCase
from dmlconf.cli.output.progress import spoken
from dmlconf.documents.wording import counted
from dmlconf.reports.runs.heading import expected_by, recording_of
from dmlconf.run_log.log import Header

__all__ = ["announcement", "graphs_note"]

_LEAST_CASES: Final = 1000
"""Runs of fewer cases are not announced, since most take seconds."""

_REFERENCE: Final = "numpy"
_PER_SECOND: Final = 400
"""Cases of the whole suite that each process runs and judges per second on two cores."""

_MOST_OF_FEW: Final = 20_000
_PER_SECOND_OF_FEW: Final = 160
"""The same for runs of at most `_MOST_OF_FEW` cases, in which large cases are more frequent."""


def announcement(header: Header, total: int | None, processes: int) -> str | None:
    """Return a line such as `Testing the NumPy reference, against ...: 1,419 cases, about 9 s`.

    Only a line on the reference says how long the run takes.

    Returns:
        None if `total`, the number of the run's cases, is below 1,000 or unknown.
    """
    if total is None or total < _LEAST_CASES:
        return None
    name = header.backend.partition(":")[0]
    subject = "the NumPy reference" if name == _REFERENCE else _device(header)
    recorded = recording_of(header)
    against = f"recordings of DirectML {recorded}" if recorded else expected_by(header)
    line = f"Testing {subject}, against {against}: {total:,} cases"
    if name == _REFERENCE:
        rate = _PER_SECOND_OF_FEW if total <= _MOST_OF_FEW else _PER_SECOND
        line += f", about {spoken(total / rate / processes)}"
    return line


def graphs_note(header: Header, plan: Iterable[PlannedCase]) -> str | None:
    """Return a note on the graphs that options such as `-o CONVOLUTION` also select, if any."""
    operators: Sequence[str] = header.options.get("operators", ())
    named = {str(name).upper() for name in operators}
    # A case of another operator, such as `GRAPHS`, was chosen for one of its nodes.
    graphs = sum(planned.template.operator_name not in named for planned in plan) if named else 0
    if not graphs:
        return None
    count = counted(graphs, "graph")
    chosen = header.options.get("keywords")
    without = f"({chosen}) and not graphs" if chosen else "not graphs"
    name = operators[0] if len(operators) == 1 else "OPERATOR"
    return (
        f"-o {name} also takes {count} with such a node; without graphs: -k {shlex.quote(without)}"
    )


def _device(header: Header) -> str:
    env = header.environment
    parts = (f"{header.backend} {env.get('version') or ''}".strip(), env.get("adapter"))
    return " on ".join(filter(None, parts))
