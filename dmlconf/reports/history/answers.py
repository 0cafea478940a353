"""What `dmlconf history` answers, as JSON values and as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dmlconf.history.causes import NOTHING
from dmlconf.history.questions import Flaky, OperatorState, Story
from dmlconf.history.timeline import Environment, RunRow, Transition, VerdictAt

__all__ = [
    "aligned",
    "cause_text",
    "driver_data",
    "driver_rows",
    "environment_data",
    "environment_text",
    "flaky_data",
    "regression_data",
    "run_data",
    "run_rows",
    "story_data",
    "story_lines",
    "transition_data",
]


def environment_data(environment: Environment) -> dict[str, Any]:
    """Return an environment, without its machine, as JSON values."""
    return {
        "backend": environment.backend,
        "adapter": environment.adapter or None,
        "driver": environment.driver or None,
        "version": environment.version or None,
    }


def environment_text(environment: Environment) -> str:
    """Return an environment as text: `directml 1.15.4, NVIDIA T4, driver 537.13`."""
    parts = [f"{environment.backend} {environment.version}".strip()]
    parts += [environment.adapter] if environment.adapter else []
    parts += [f"driver {environment.driver}"] if environment.driver else []
    return ", ".join(parts)


def run_data(run: RunRow) -> dict[str, Any]:
    """Return a run as JSON values."""
    return {
        "run": run.id,
        "started": run.started,
        "seconds": round(run.seconds, 3),
        "environment": environment_data(run.environment),
        "dmlconf": run.dmlconf,
        "suite_digest": run.suite,
        "catalogue_digest": run.catalogue,
        "against": run.against,
        "complete": run.complete,
        "shard": run.shard or None,
        "cases": run.cases,
        "failing": run.failing,
    }


def run_rows(runs: Iterable[RunRow]) -> Iterator[tuple[str, ...]]:
    """Yield a heading, and then a row for each run."""
    yield ("run", "started", "cases", "failing", "environment", "")
    for run in runs:
        notes = [f"shard {run.shard}"] if run.shard else []
        notes += [] if run.complete else ["incomplete"]
        yield (
            f"#{run.id}",
            run.started[:19].replace("T", " "),
            f"{run.cases:,}",
            f"{run.failing:,}",
            environment_text(run.environment),
            ", ".join(notes),
        )


def _verdict_data(verdict: VerdictAt | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {
        "status": str(verdict.status),
        "reason": verdict.reason or None,
        "message": verdict.message or None,
    }


def transition_data(transition: Transition) -> dict[str, Any]:
    """Return a change of a verdict as JSON values."""
    return {
        "case": transition.case,
        "operator": transition.operator,
        "before": _verdict_data(transition.before),
        "after": _verdict_data(transition.after),
        "last_run": None if transition.last is None else _run_data(transition.last),
        "first_run": _run_data(transition.first),
        "causes": list(transition.causes),
    }


def _run_data(run: RunRow) -> dict[str, Any]:
    environment = environment_data(run.environment)
    return {"run": run.id, "started": run.started, "environment": environment}


def cause_text(transition: Transition) -> str:
    """Return the causes of a changed verdict, such as `rules, driver 537.13 to 551.23`.

    `NOTHING` if there are none.
    """
    return ", ".join(transition.causes) or NOTHING


def story_data(story: Story) -> dict[str, Any]:
    """Return the changes of a case's verdict, for a backend on an adapter, as JSON values."""
    return {
        "line": {"backend": story.line.backend, "adapter": story.line.adapter or None},
        "runs": story.runs,
        "failed": story.failed,
        "changes": [transition_data(each) for each in story.transitions],
    }


def story_lines(story: Story) -> Iterator[str]:
    """Yield lines of text: in how many runs a case failed, then each change of its verdict.

    If the case fails after a change, the failure's message follows on a line of its own.
    """
    yield f"{story.line.name}: failed in {story.failed:,} of {story.runs:,} runs"
    for each in story.transitions:
        since = f"{each.first.started[:19].replace('T', ' ')}  #{each.first.id:<5}"
        yield f"  {since}  {_change_text(each)}"
        if each.after.fails and each.after.message:
            yield f"  {'':{len(since)}}  {each.after.message}"


def _change_text(change: Transition) -> str:
    if change.before is None or change.last is None:
        return f"{change.after.text} since then"
    what = f"{change.before.text} until #{change.last.id}, then {change.after.text}"
    if change.before.text == change.after.text:
        what = f"{change.after.text}, with other output bits than until #{change.last.id}"
    return f"{what}; changed with it: {cause_text(change)}"


def flaky_data(each: Flaky) -> dict[str, Any]:
    """Return a flaky case as JSON values."""
    last = each.story.transitions[-1]
    return {
        "case": last.case,
        "operator": last.operator,
        "line": {"backend": each.story.line.backend, "adapter": each.story.line.adapter or None},
        "changes_without_cause": each.changes,
        "runs": each.story.runs,
        "failed": each.story.failed,
        "rate": round(each.rate, 4),
        "last_change": transition_data(last),
    }


def regression_data(transition: Transition, still: bool) -> dict[str, Any]:
    """Return a regression as JSON values.

    Args:
        still: whether the case has failed ever since.
    """
    return {**transition_data(transition), "still_fails": still}


def driver_data(states: Iterable[OperatorState]) -> list[dict[str, Any]]:
    """Return how many cases of each operator fail in each environment, as JSON values."""
    return [
        {
            "operator": state.operator,
            "environment": environment_data(state.environment),
            "run": state.run.id,
            "started": state.run.started,
            "whole": state.run.whole,
            "cases": state.cases,
            "failing": state.failing,
            "seconds": round(state.seconds, 3),
        }
        for state in states
    ]


def driver_rows(states: Sequence[OperatorState], *, every: bool) -> Iterator[tuple[str, ...]]:
    """Yield a heading, and for each operator how many of its cases fail in each environment.

    The row `GEMM`, `2/310`, `-` says that 2 of 310 cases fail in environment `[1]`, and that none
    ran in environment `[2]`.

    Args:
        every: whether operators without a failing case have a row, too.
    """
    columns = list({state.environment.id: state for state in states}.values())
    yield ("operator", *(f"[{at}]" for at, _ in enumerate(columns, 1)))
    rows: dict[str, Mapping[int, OperatorState]] = {}
    for state in states:
        rows[state.operator] = {**rows.get(state.operator, {}), state.environment.id: state}
    for name in sorted(rows):
        own = rows[name]
        if every or any(state.failing for state in own.values()):
            yield (name, *(_cell(own.get(column.environment.id)) for column in columns))


_NONE: Final = "-"


def _cell(state: OperatorState | None) -> str:
    return _NONE if state is None else f"{state.failing}/{state.cases}"


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table as lines of text; all rows have the same number of cells.

    Cells that begin with a digit, or are `-`, align right.
    """
    listed = list(rows)
    if not listed:
        return
    widths = [max(len(row[at]) for row in listed) for at in range(len(listed[0]))]
    for row in listed:
        cells = [
            cell.rjust(width) if cell[:1].isdigit() or cell == _NONE else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ]
        yield "  ".join(cells).rstrip()
