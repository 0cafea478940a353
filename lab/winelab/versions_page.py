"""Make `docs/versions.md` and `docs/scoreboard.md`: the suite's results on DirectML's releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from dmlconf.excuses.known_fault_file import read_known_faults
from dmlconf.excuses.known_faults import KnownFault
from dmlconf.excuses.scope import parse_version
from dmlconf.reports.comparisons.scoreboard import render_markdown, scoreboard
from dmlconf.run_log.log import InvalidLogError, RunLog, read_log
from dmlconf.verdicts.verdict import ReasonKind, Status
from winelab.errors import LabError
from winelab.suite_runs import log_file
from winelab.versions import Release, releases

__all__ = ["page", "scoreboard_page", "section_of_faults"]

_HEAD: Final = """\
# Versions of DirectML

The suite's results on the releases of DirectML that the [Wine lab](wine-lab.md) runs. All of them
are measured there. DirectML's own kernels are the same on every device, but those for shader
model 6 do not run in the lab. To generate this page:

```sh
python3 lab/lab.py versions --run
.venv/bin/python lab/lab.py versions --page > docs/versions.md
```

[scoreboard.md](scoreboard.md) has the results by operator, and [reports.md](reports.md) compares
two releases case by case.
"""

_SCOREBOARD_HEAD: Final = """\
# Scoreboard of DirectML's releases

Operators by release: each cell is the share that passed of the cases that passed or failed. A case
that needs a newer feature level than a release has is `unsupported` there; `waived` cases fail
because of a [known fault](versions.md#known-faults) of the release. To generate this page:

```sh
python3 lab/lab.py versions --run
.venv/bin/python lab/lab.py versions --scoreboard > docs/scoreboard.md
```

`dmlconf report directml-versions/*.jsonl --report html:scoreboard.html` generates a page from the
same logs that links to each failure.
"""

_NO_CHOICE: Final = {"against", "circumstances", "compare_unfused", "substrate"}
"""Options that say how cases are run and judged, but not which cases."""

_FAULTS_HEAD: Final = """\
## Known faults

Faults of DirectML itself, from `schemas/known-faults.yaml`. A case that fails because of one of
these is `waived`, with the reason `known fault of DirectML`: a wrong value if it is the one that
the fault's function computes, a crash or a refusal if the desc meets the fault's condition. A case
that passes nonetheless, for example because of a driver's own implementation, has passed. Each
fault names the first and the last of the versions above that have it.
"""


@dataclass(frozen=True, slots=True)
class _Run:
    release: Release
    log: RunLog

    @property
    def level(self) -> str:
        return str(self.log.header.environment["details"]["feature_level"])

    def count(self, *statuses: Status) -> int:
        return sum(verdict.status in statuses for verdict in self.log.verdicts)

    def reasons(self, status: Status) -> Counter[ReasonKind]:
        verdicts = self.log.verdicts
        return Counter(v.reason.kind for v in verdicts if v.status is status and v.reason)


def page(chosen: Sequence[Release], logs: Path) -> str:
    """Return the page `docs/versions.md`.

    Args:
        chosen: the releases to show, the oldest first.
        logs: the folder of their logs, as written by `versions --run`.

    Raises:
        LabError: a log is missing, or from another DirectML, a part of the suite or another suite.
    """
    runs = _runs(chosen, logs)
    parts = [_HEAD, *_counts(runs), *_changes(runs), *_failures(runs), section_of_faults()]
    return "\n".join(parts)


def scoreboard_page(chosen: Sequence[Release], logs: Path) -> str:
    """Return the page `docs/scoreboard.md`, with a row for each operator and a column a release.

    Args:
        chosen: the releases to show, the oldest first.
        logs: the folder of their logs, as written by `versions --run`.

    Raises:
        LabError: a log is missing, or from another DirectML, a part of the suite or another suite.
    """
    runs = _runs(chosen, logs)
    files = [release.version for release in chosen]
    table = render_markdown(scoreboard([run.log for run in runs], files))
    return f"{_SCOREBOARD_HEAD}\n{table}"


def _runs(chosen: Sequence[Release], logs: Path) -> list[_Run]:
    runs = [_Run(release, _read(log_file(logs, release), release)) for release in chosen]
    suites = {run.log.header.suite_digest for run in runs}
    if len(suites) > 1:
        raise LabError("the logs are from different suites; run versions --run again")
    if len({_selection(run.log) for run in runs}) > 1:
        raise LabError("the logs are from different parts of the suite; run versions --run again")
    return runs


def _read(path: Path, release: Release) -> RunLog:
    try:
        log = read_log(path)
    except (InvalidLogError, OSError) as error:
        message = f"{error}; create it with: python3 lab/lab.py versions --run {release.version}"
        raise LabError(message) from error
    version = log.header.environment["version"]
    if version != release.version:
        raise LabError(f"{path} is from DirectML {version}, not {release.version}")
    if not log.complete:
        raise LabError(f"{path} is from a run that did not finish")
    return log


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _selection(log: RunLog) -> str:
    """Return the options that selected cases, as text; empty if the whole suite was run."""
    chosen = {name: value for name, value in log.header.options.items() if name not in _NO_CHOICE}
    parts = (
        f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in chosen.items()
    )
    return "; ".join(parts)


def _counts(runs: Sequence[_Run]) -> Iterator[str]:
    selected = runs[0].log.header.selected
    selection = _selection(runs[0].log)
    kinds = [ReasonKind.FEATURE_LEVEL, ReasonKind.SUBSTRATE, ReasonKind.NOT_DOCUMENTED]
    yield f"## Verdicts on {selected:,} cases\n"
    if selection:
        yield (
            f"These are the cases of the suite that `{selection}` selects. "
            "All figures on this page count only them.\n"
        )
    yield _row(
        [
            "DirectML",
            "Feature level",
            "Package",
            "Built",
            "Passed",
            "Failed",
            "Broken",
            "Known faults",
            "Unchecked",
            "Newer level",
            "No kernel in the lab",
            "Not documented",
        ]
    )
    yield "|---|---|---|---|" + "---:|" * 8
    for run in runs:
        unsupported = run.reasons(Status.UNSUPPORTED)
        counts = [
            run.count(Status.PASSED),
            run.count(Status.FAILED),
            run.count(Status.BROKEN),
            run.count(Status.WAIVED),
            run.count(Status.UNCHECKED),
            *(unsupported[kind] for kind in kinds),
        ]
        release = run.release
        figures = (f"{count:,}" for count in counts)
        yield _row([release.version, run.level, release.package, release.date, *figures])
    yield (
        "\nThe last three columns are `unsupported`: cases that need a newer feature level than\n"
        "the release has, kernels for shader model 6 only, and what a release refuses that no\n"
        "table of support lists.\n"
    )


def _changes(runs: Sequence[_Run]) -> Iterator[str]:
    """Yield a table of the changes from each release to the next: level, cases, faults."""
    yield "## What changes\n"
    yield _row(["From", "To", "Feature level", "Cases that become possible", "Fixed", "Introduced"])
    yield "|---|---|---|---:|---|---|"
    for before, after in pairwise(runs):
        level = after.level if after.level == before.level else f"{before.level} to {after.level}"
        possible = len(_unreached(before) - _unreached(after))
        old, new = _version(before), _version(after)
        faults = read_known_faults()
        yield _row(
            [
                before.release.version,
                after.release.version,
                level,
                f"{possible:,}",
                _names(f for f in faults if f.first <= old <= f.last < new),
                _names(f for f in faults if old < f.first <= new <= f.last),
            ]
        )
    yield ""


def _unreached(run: _Run) -> set[str]:
    return {
        verdict.case
        for verdict in run.log.verdicts
        if verdict.reason is not None and verdict.reason.kind is ReasonKind.FEATURE_LEVEL
    }


def _version(run: _Run) -> tuple[int, ...]:
    return parse_version(run.release.version) or ()


def _names(faults: Iterable[KnownFault]) -> str:
    return "<br>".join(f"[{f.name}](#{f.name})" for f in faults) or "-"


def _failures(runs: Sequence[_Run]) -> Iterator[str]:
    """Yield a section on failures that no known fault explains, if there are any."""
    lines = [
        f"- {run.release.version}: `{verdict.case}`: {verdict.reason.kind}"
        for run in runs
        for verdict in run.log.verdicts
        if verdict.status.fails_run and verdict.reason is not None
    ]
    if lines:
        yield "## Not explained\n"
        yield from lines
        yield ""


def section_of_faults() -> str:
    """Return the page's section on known faults, which needs no logs."""
    known = {parse_version(release.version): release.version for release in releases()}
    return "\n".join([_FAULTS_HEAD, *(_fault(fault, known) for fault in read_known_faults())])


def _fault(fault: KnownFault, known: Mapping[tuple[int, ...] | None, str]) -> str:
    span = f"{known[fault.first]} to {known[fault.last]}"
    if fault.first == fault.last:
        span = f"{known[fault.first]} only"
    how = ", compiled as a graph" if fault.graph else ""
    if fault.circumstance is not None:
        how += f", only when {fault.circumstance}"
    alone = " Its cases run in a separate process." if fault.alone else ""
    concerned = sorted(fault.cases or ())
    cases = "".join(f"\n- `{case}`" for case in concerned)
    if fault.formula is not None:
        cases = f"\n- any case whose outputs `{fault.formula.__name__}` computes"
    if fault.when is not None and fault.formula is None:
        cases = f"\n- where `{fault.when}`"
        if concerned:
            cases = f"\n- `{'`, `'.join(concerned)}` where `{fault.when}`"
    if fault.node is not None:
        nodes = f"with a node of {' or '.join(sorted(fault.node.operators))}"
        cases += f"\n- {nodes} where `{fault.node.when}`"
    if fault.constant is not None:
        cases += f"\n- with a constant where `{fault.constant.when}`"
    if fault.breaks is not None:
        cases += f"\n- that break `{'`, `'.join(sorted(fault.breaks))}` and nothing else"
    cases = cases or "\n- every case"
    return (
        f"### {fault.name}\n\n"
        f"{', '.join(sorted(fault.operators))}{how}, {span}. {fault.reason}{alone}\n{cases}\n"
    )
