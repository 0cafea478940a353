"""Run cases on backends and judge them, as often as a diagnosis needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.backends.registry import BackendName
from dmlconf.cases.model import Case
from dmlconf.engine.session import OpenBackend, conclusion_for, no_expectation, open_backend
from dmlconf.graphs.relations import Relation
from dmlconf.judging.conclusion import JudgeOptions, alone_on
from dmlconf.judging.judge import Against, not_asked, unsupported_reason
from dmlconf.judging.needs_run import answered
from dmlconf.judging.relations import Stopped, in_other_form
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import ReasonKind, Verdict
from dmlconf.workers.execution import Limits

__all__ = ["Bench", "open_bench"]


class Bench:
    """Backends under test, each opened when it is first needed.

    Methods that open a backend or run cases raise BackendError if the backend cannot be used.

    Attributes:
        backend: the backend that runs cases, unless a call names another one.
        against: gives the expected outcome of cases that do not state all of their outputs.
    """

    def __init__(
        self,
        backend: BackendName,
        timeout: float,
        against: Against,
        *,
        known_faults: bool = True,
    ) -> None:
        """Take the seconds that a case may run, and whether known faults waive failures."""
        self.backend = backend
        self.against = against
        self._timeout = timeout
        self._options = JudgeOptions(known_faults=known_faults)
        self._backends: dict[BackendName, OpenBackend] = {}

    def verdicts(self, cases: Sequence[Case], backend: BackendName | None = None) -> list[Verdict]:
        """Run cases together, and return the verdicts; those on unsupported cases come first."""
        tested = self.open(backend)
        reasons = [unsupported_reason(case, tested.capabilities) for case in cases]
        declined = [
            not_asked(case, reason)
            for case, reason in zip(cases, reasons, strict=True)
            if reason is not None
        ]
        runnable = [case for case, reason in zip(cases, reasons, strict=True) if reason is None]
        outcomes = list(tested.execute(iter(runnable)))
        return [*declined, *(self._judged(tested, *each) for each in outcomes)]

    def breaks_down(self, cases: Sequence[Case], kind: ReasonKind) -> bool:
        """Return whether the first breakdown of these cases in a new process is of this kind.

        Unsupported cases are left out. If nothing breaks down, or the backend has no worker
        process, the result is False.
        """
        limits = Limits(timeout=self._timeout, second_tries=False)
        with closing(open_backend(self.backend, limits)) as tested:
            supported = (
                case for case in cases if unsupported_reason(case, tested.capabilities) is None
            )
            for _ in tested.execute(supported):
                ran = tested.latest()
                if ran is not None and ran.lost:
                    return any(each.kind.value == kind.value for each in ran.lost)
        return False

    def verdict(self, case: Case, backend: BackendName | None = None) -> Verdict:
        """Return the verdict on a case that runs alone."""
        return self.verdicts([case], backend)[0]

    def verdict_in_form(self, case: Case, form: Relation) -> Verdict:
        """Return the verdict on a graph run in another form that must give the same outputs."""
        tested = self.open()
        outputs = answered(in_other_form(case, form), alone_on(tested.execute))
        outcome = outputs.outcome if isinstance(outputs, Stopped) else Outputs(outputs)
        conclusion = conclusion_for(tested, self.against, self._options)
        return conclusion.excused(case, outcome, conclusion.judge(case, outcome))

    def outputs(self, case: Case) -> Mapping[str, Array] | None:
        """Return the outputs of a case that runs alone; None if it gives none."""
        outcome = alone_on(self.open().execute)(case)
        return outcome.arrays if isinstance(outcome, Outputs) else None

    def outputs_one_by_one(self, case: Case) -> Mapping[str, Array] | None:
        """Return the outputs of a graph whose nodes run one by one; None if a node gives none."""
        steps = in_other_form(case, Relation.UNFUSED)
        outputs = answered(steps, alone_on(self.open().execute))
        return None if isinstance(outputs, Stopped) else outputs

    def close(self) -> None:
        """Close all backends."""
        for tested in self._backends.values():
            tested.close()
        self._backends.clear()

    def open(self, backend: BackendName | None = None) -> OpenBackend:
        """Return a backend, by default the one under test, ready to run cases."""
        name = backend or self.backend
        if name not in self._backends:
            self._backends[name] = open_backend(name, Limits(timeout=self._timeout))
        return self._backends[name]

    def _judged(self, tested: OpenBackend, case: Case, outcome: Outcome) -> Verdict:
        conclusion = conclusion_for(tested, self.against, self._options)
        return answered(conclusion.of(case, outcome), alone_on(tested.execute))


@contextmanager
def open_bench(
    backend: BackendName,
    timeout: float,
    against: Against = no_expectation,
    *,
    known_faults: bool = True,
) -> Iterator[Bench]:
    """Yield a bench, and close its backends at the end."""
    bench = Bench(backend, timeout, against, known_faults=known_faults)
    try:
        yield bench
    finally:
        bench.close()
