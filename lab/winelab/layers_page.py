"""Make `docs/layers.md`: the results of layers of networks on DirectML in the lab, by operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from dmlconf.run_log.log import InvalidLogError, RunLog, read_log
from dmlconf.verdicts.verdict import Status, Verdict
from winelab.errors import LabError

__all__ = ["page"]

_HEAD: Final = """\
# Layers of networks on DirectML

The [layers of published networks](models.md), run on DirectML in the [Wine lab](wine-lab.md), on a
processor. To generate this page:

```sh
python3 lab/lab.py run -- run cases/ --tag model --without-tag captured \\
  -b directml -j 2 --circumstances none --timeout 900 --log layers.jsonl
.venv/bin/python lab/lab.py layers layers.jsonl > docs/layers.md
```

"""

_COLUMNS: Final = """\
`Time` is what the backend took: generating the inputs, compilation, two dispatches and reading the
outputs, but not the reference; a batch's time is spread evenly over its cases. `Longest` is the
longest time of a case on the device, both dispatches together.

| Operator | Cases | Passed | Unsupported | Others | Time | Each | Longest |
|---|---:|---:|---:|---:|---:|---:|---:|
"""


def page(log_file: Path) -> str:
    """Return the page for the log of a run.

    Args:
        log_file: the log of a run of the cases with the tag `model`.

    Raises:
        LabError: the file is not a log, or its run did not finish or had cases without that tag.
    """
    log = _read(log_file)
    operators: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in log.verdicts:
        operators[verdict.operator].append(verdict)
    rows = (_row(name, verdicts) for name, verdicts in sorted(operators.items()))
    parts = [_HEAD, *_summary(log), _COLUMNS, *rows, *_remarks(log.verdicts)]
    return "".join(parts)


def _read(path: Path) -> RunLog:
    try:
        log = read_log(path)
    except (InvalidLogError, OSError) as error:
        raise LabError(str(error)) from error
    if not log.complete:
        raise LabError(
            f"{path} is from a run that did not finish; continue it with: run --resume {path}"
        )
    others = [verdict.case for verdict in log.verdicts if "model" not in verdict.tags]
    if others:
        raise LabError(f"{path} has cases without the tag model, such as {others[0]}")
    return log


def _summary(log: RunLog) -> Iterator[str]:
    counts = {status: sum(v.status is status for v in log.verdicts) for status in Status}
    statuses = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    version = log.header.environment["version"]
    minutes = log.footer.seconds / 60 if log.footer else 0
    cases = f"{len(log.verdicts):,} cases in {minutes:.0f} minutes"
    yield f"DirectML {version}, {cases}: {statuses}.\n\n"


def _row(operator: str, verdicts: Sequence[Verdict]) -> str:
    passed = sum(verdict.status is Status.PASSED for verdict in verdicts)
    unsupported = sum(verdict.status is Status.UNSUPPORTED for verdict in verdicts)
    others = len(verdicts) - passed - unsupported
    seconds = sum(verdict.seconds for verdict in verdicts)
    dispatches = max(sum(verdict.execution.dispatch_seconds or ()) for verdict in verdicts)
    counts = [f"{count:,}" if count else "-" for count in (passed, unsupported, others)]
    times = [f"{seconds:.1f} s", f"{seconds / len(verdicts):.2f} s"]
    measured = f"{dispatches:.2f} s" if dispatches else "-"
    cells = [operator, f"{len(verdicts):,}", *counts, *times, measured]
    return f"| {' | '.join(cells)} |\n"


def _remarks(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a section on the cases that did not pass, by status and reason."""
    reasons: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.reason is not None:
            reasons[f"{verdict.status}: {verdict.reason.kind}"].append(verdict)
    if reasons:
        yield "\n## Cases that did not pass\n"
        yield from _listed(reasons)


def _listed(reasons: Mapping[str, Sequence[Verdict]]) -> Iterator[str]:
    for reason, verdicts in sorted(reasons.items()):
        yield f"\n{reason}:\n\n"
        for verdict in verdicts:
            text = verdict.reason.message if verdict.reason else ""
            yield f"- `{verdict.case}`: {text}\n"
