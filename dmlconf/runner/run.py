"""One run, from a plan to a log with a verdict for every selected case, in one go or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from time import perf_counter
from typing import Final

from dmlconf.cases.model import PlannedCase
from dmlconf.runner.earlier import EarlierRun
from dmlconf.runner.interrupts import Uninterrupted, forget_interrupt, raise_if_interrupted
from dmlconf.runner.judge import not_run
from dmlconf.runner.log import Footer, Header, LogWriteError, LogWriter
from dmlconf.runner.log_consistency import cases_digest
from dmlconf.runner.retries import verdict_of_attempts
from dmlconf.runner.session import now
from dmlconf.runner.verdict import ReasonKind, Status, Verdict

__all__ = ["run"]

_STOPPED: Final = {1: ReasonKind.STOPPED_AT_FIRST_FAILURE}


def run(
    plan: Sequence[PlannedCase],
    verdicts: Generator[Verdict, None, None],
    log: LogWriter,
    header: Header,
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
    *,
    most_failures: int | None = None,
    places: Sequence[int] | None = None,
    earlier: EarlierRun | None = None,
    attempts: Mapping[str, Sequence[Verdict]] | None = None,
) -> Footer:
    """Run the plan, and write header, verdicts and footer to the log.

    Every selected case gets one verdict: if the run is interrupted, stopped or dies of an
    error, those that were not reached get `not run`.

    Args:
        plan: the selected cases.
        verdicts: yields them, as `judged` does.
        log: receives every verdict as it is reached.
        header: the log's first line.
        on_verdict: is called with every verdict after it was logged.
        most_failures: after how many verdicts that fail the run to stop; None for never.
        places: the place of each of these cases in the whole plan, where they are a shard.
        earlier: the part of the run that the log has already.
        attempts: at cases that failed and will run again; they decide on a case whose turn does
            not come.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a worker could not be replaced.
        LogWriteError: the log cannot be written any more.
    """
    began = perf_counter()
    counts: Counter[Status] = Counter(earlier.summary if earlier else {})
    kept = earlier.places if earlier else {}
    unreached = {
        planned.identifier: index
        for index, planned in enumerate(plan) if planned.identifier not in kept
    }  # fmt: skip
    why = ReasonKind.INTERRUPTED
    uninterrupted = Uninterrupted()

    def record(verdict: Verdict) -> None:
        with uninterrupted:
            counts[verdict.status] += 1
            index = unreached.pop(verdict.case)
            log.verdict(verdict, index if places is None else places[index])
        on_verdict(verdict)

    try:
        if earlier is None:
            log.header(header)
        try:
            with closing(verdicts):
                while not _too_many(counts, most_failures):
                    verdict = next(verdicts, None)
                    if verdict is None:
                        break
                    record(verdict)
                    raise_if_interrupted()
                else:
                    why = _STOPPED.get(most_failures or 0, ReasonKind.TOO_MANY_FAILURES)
        except KeyboardInterrupt:
            pass
        finally:
            forget_interrupt()
            for case, of_case in (attempts or {}).items():
                if case in unreached:
                    record(verdict_of_attempts(of_case))
            complete = not unreached
            for case, index in list(unreached.items()):
                template = plan[index].template
                record(not_run(case, template.operator_name, template.tags, why))
            seconds = perf_counter() - began
            if earlier is not None and earlier.footer is not None:
                seconds += earlier.footer.seconds
            log.footer(
                footer := Footer(
                    finished=now(),
                    seconds=round(seconds, 3),
                    complete=complete,
                    summary={status.value: counts[status] for status in Status},
                    cases_digest=header.cases_digest or cases_digest(p.identifier for p in plan),
                    kept_verdicts=None if earlier is None else len(kept),
                )
            )
    except LogWriteError as error:
        error.failing = any(status.fails_run for status in counts)
        raise
    return footer


def _too_many(counts: Mapping[Status, int], most: int | None) -> bool:
    if most is None:
        return False
    return sum(count for status, count in counts.items() if status.fails_run) >= most
