"""The engine, which executes a `Run`.

`Engine.execute` yields events; consumers (`dmlconf.engine.consumers`) log and show them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Final, Self

from dmlconf.cases.identifiers import cases_digest
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.against import Expectations, expectations
from dmlconf.engine.events import (
    Event,
    Executed,
    Finished,
    Interrupted,
    Judged,
    Opened,
    Retried,
    Unsupported,
)
from dmlconf.engine.repetition import repeated
from dmlconf.engine.retries import Retries, verdict_of_attempts
from dmlconf.engine.run import Rounds, Run
from dmlconf.engine.session import OpenBackend, executed, make_header, no_expectation, now
from dmlconf.engine.stream import Attempt, Verdicts
from dmlconf.engine.target import Target, local_target
from dmlconf.engine.unreached import Unreached
from dmlconf.excuses.waivers import effective_waivers
from dmlconf.judging.judge import not_run
from dmlconf.run_log.log import Footer, Header
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from dmlconf.workers.interrupts import Uninterrupted, forget_interrupt, raise_if_interrupted

__all__ = ["Engine"]

_STOPPED: Final = {1: ReasonKind.STOPPED_AT_FIRST_FAILURE}
"""The reason for a stop, by `Run.most_failures`; `TOO_MANY_FAILURES` for other numbers."""


class Engine:
    """Executes a `Run`, and keeps the backend open until `close` is called.

    Attributes:
        target: the backend or the workers that run the cases.
        expected: the source of expected values that cases do not state.
        header: the description of the run, the first line of its log.
    """

    def __init__(self, run: Run, target: Target | None = None) -> None:
        """Open the backend, unless `target` has an open one.

        The engine closes the target, also if this method raises an error.

        Raises:
            BackendError: the backend or a recording cannot be used.
            InvalidFilesError: a case of a matrix cannot be built.
        """
        self.run = run
        self._stop_requested = False
        self.target = target or local_target(run.how, judged=run.judged)
        try:
            self.expected = (
                expectations(
                    run.against,
                    self.backend,
                    run.suite,
                    run.plan,
                    run.suite_paths,
                    None if run.how.cache is None else run.how.cache.store,
                )
                if run.judged
                else Expectations(run.against, no_expectation)
            )
            self.header: Header = self._header()
            waivers = effective_waivers(run.waivers, self.backend.environment)
            self._judge = self.target.judge(self.expected, waivers)
        except BaseException:
            self.close()
            raise

    @property
    def backend(self) -> OpenBackend:
        """The backend under test."""
        return self.target.backend

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the backend."""
        self.target.backend.close()

    def stop(self) -> None:
        """Run no more cases after the current event, as Ctrl-C does."""
        self._stop_requested = True

    def leave_out(self, cases: Container[str]) -> None:
        """Leave out these cases, by identifier; the header still counts them."""
        chosen = self.run.chosen
        assert not isinstance(chosen, Rounds)
        self.run = replace(self.run, chosen=chosen.without(cases))

    def judge(self, cases: Sequence[PlannedCase]) -> Verdicts:
        """Run cases once more, outside the run, and yield a verdict on each."""
        return self._judge(cases)

    def execute(self) -> Generator[Event, None, None]:
        """Run the cases, and yield the events of the run.

        In a judged run, each case that the log lacks gets one `Judged`; cases that were not reached
        get the verdict `not run`. In other runs, each case that is reached gets one `Executed` or
        `Unsupported`. The last event is `Finished`; an error that ended the run is raised after it.
        While a consumer handles an event, interrupts wait (`Uninterrupted`).

        Raises:
            InvalidFilesError: a case of a matrix cannot be built.
            BackendError: a process could not be started, or a recording cannot be read.
        """
        uninterrupted, earlier = Uninterrupted(), self.run.earlier
        state: _State | None = None
        failure: BaseException | None = None
        stopped: ReasonKind | None = None
        try:
            with uninterrupted:
                yield Opened(self.header, self.total, earlier is not None)
                if earlier is not None and earlier.complete and earlier.footer is not None:
                    yield Finished(earlier.footer, logged=True)
                    return
                state = _State(self.run, self.header)
            raise_if_interrupted()
            with closing(self._steps(state)) as steps:
                while not state.has_too_many_failures:
                    event = next(steps, None)
                    if event is None:
                        break
                    with uninterrupted:
                        yield event
                    raise_if_interrupted()
                    if self._stop_requested:
                        raise KeyboardInterrupt
                else:
                    most = self.run.most_failures or 0
                    stopped = _STOPPED.get(most, ReasonKind.TOO_MANY_FAILURES)
        except KeyboardInterrupt:
            stopped = ReasonKind.INTERRUPTED
        except Exception as error:
            failure = error
        if state is None:
            raise failure or KeyboardInterrupt
        forget_interrupt()
        with uninterrupted:
            yield from state.remaining(stopped or ReasonKind.INTERRUPTED)
        if failure is not None:
            raise failure

    def _steps(self, state: _State) -> Generator[Event, None, None]:
        run = self.run
        if not run.judged:
            for cases in state.rounds():
                for event in executed(cases, self.backend):
                    state.reached(event)
                    yield event
            return
        judge = partial(repeated, judge=self._numbered, times=run.repeat, seed=run.shuffle)
        for cases in state.rounds():
            with closing(state.retries.run(cases, judge, state.failures_to_come)) as stream:
                for each in stream:
                    if isinstance(each, Verdict):
                        yield state.judged(each)
                    elif isinstance(each, Attempt):
                        yield Retried(each.verdict, state.place(each.verdict.case))
                    else:
                        yield each

    def _numbered(self, cases: Sequence[PlannedCase]) -> Verdicts:
        """Judge cases; number worker processes after those of the earlier part of the run."""
        last = self.run.earlier.processes if self.run.earlier else 0
        with closing(self._judge(cases)) as verdicts:
            for verdict in verdicts:
                execution = verdict.execution
                yield (
                    replace(verdict, execution=execution.with_processes_after(last))
                    if last
                    else verdict
                )

    @property
    def total(self) -> int | None:
        """How many cases the run is to reach; None if that is not known in advance."""
        chosen, earlier = self.run.chosen, self.run.earlier
        if isinstance(chosen, Rounds):
            return chosen.expected
        if earlier is None:
            return len(chosen.cases)
        return sum(each.identifier not in earlier.places for each in chosen.cases)

    def _header(self) -> Header:
        run, target = self.run, self.target
        chosen = run.chosen
        return make_header(
            run.suite,
            run.paths,
            (chosen.expected or 0) if isinstance(chosen, Rounds) else len(chosen.cases),
            target.backend,
            self.expected.name,
            dict(run.options) | target.decided,
            digest=None if isinstance(chosen, Rounds) else chosen.digest,
            shard=None if isinstance(chosen, Rounds) else chosen.record,
            workers=target.workers,
        )


class _State:
    def __init__(self, run: Run, header: Header) -> None:
        self._run, self._header = run, header
        self._began = perf_counter()
        earlier = run.earlier
        self._kept = earlier.places if earlier else {}
        self._counts: Counter[Status] = Counter(earlier.summary if earlier else {})
        self._unreached = Unreached()
        self._generated: list[str] = []
        self.retries = Retries(run.retries, earlier.attempts if earlier else None)
        chosen = run.chosen
        if not isinstance(chosen, Rounds):
            left = chosen.without(self._kept) if self._kept else chosen
            self._left = left.cases
            self._unreached.expect(left.cases, left.every_place)

    def rounds(self) -> Iterator[Sequence[PlannedCase]]:
        chosen = self._run.chosen
        if isinstance(chosen, Rounds):
            for cases in chosen.rounds:
                begin = len(self._generated)
                self._unreached.expect(cases, range(begin, begin + len(cases)))
                self._generated += (each.identifier for each in cases)
                yield cases
            return
        yield self._left

    def place(self, case: str) -> int:
        return self._unreached.place(case)

    def judged(self, verdict: Verdict) -> Judged:
        self._counts[verdict.status] += 1
        return Judged(verdict, self._unreached.reach(verdict.case))

    def reached(self, event: Executed | Unsupported) -> None:
        if isinstance(event, Unsupported):
            self._counts[event.verdict.status] += 1
            self._unreached.reach(event.verdict.case)
        else:
            self._unreached.reach(event.case.identifier)

    @property
    def _failures(self) -> int:
        return sum(count for status, count in self._counts.items() if status.fails_run)

    @property
    def failures_to_come(self) -> int | None:
        """How many more failures end the run; None for no limit."""
        most = self._run.most_failures
        return None if most is None else max(0, most - self._failures)

    @property
    def has_too_many_failures(self) -> bool:
        most = self._run.most_failures
        return most is not None and self._failures >= most

    def remaining(self, reason: ReasonKind) -> Generator[Event, None, None]:
        """Yield `Interrupted` if cases are left, in judged runs their verdicts, and `Finished`."""
        if self._unreached:
            yield Interrupted(reason)
        for case, attempts in self.retries.attempts.items():
            if case in self._unreached:
                yield self.judged(verdict_of_attempts(attempts))
        complete = not self._unreached
        if not self._run.judged:
            self._counts[Status.NOT_RUN] += len(self._unreached)
            self._unreached.clear()
        for planned in self._unreached:
            name, template = planned.identifier, planned.template
            yield self.judged(not_run(name, template.operator_name, template.tags, reason))
        yield Finished(self._footer(complete))

    def _footer(self, complete: bool) -> Footer:
        earlier, chosen = self._run.earlier, self._run.chosen
        seconds = perf_counter() - self._began
        if earlier is not None and earlier.footer is not None:
            seconds += earlier.footer.seconds
        digest = cases_digest(self._generated) if isinstance(chosen, Rounds) else chosen.digest
        return Footer(
            finished=now(),
            seconds=round(seconds, 3),
            complete=complete,
            summary={status.value: self._counts[status] for status in Status},
            cases_digest=digest,
            kept_verdicts=None if earlier is None else len(self._kept),
        )
