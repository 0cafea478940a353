"""Judge the outcomes of a certificate by dmlconf's own reference and rules."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dmlconf.backends import registry
from dmlconf.backends.protocol import (
    Backend,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Environment,
    Outcome,
)
from dmlconf.backends.subject import REFERENCE
from dmlconf.cases.loading.loader import Suite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.certification.outcomes import StoredOutcomes, read_outcomes
from dmlconf.engine.against import AUTO, Expectations, expectations
from dmlconf.engine.session import OpenBackend, in_process, judged
from dmlconf.excuses.substrate import NO_SUBSTRATE, Substrate
from dmlconf.excuses.waivers import NO_WAIVERS, Waivers
from dmlconf.judging.conclusion import JudgeOptions
from dmlconf.verdicts.verdict import Verdict
from dmlconf.workers.execution import Execution, Limits, execution_of

if TYPE_CHECKING:
    from dmlconf.workers.worker import Raised

__all__ = ["OUTCOMES", "OUTPUTS", "Evidence", "judge_again"]

OUTCOMES: Final = "outcomes.jsonl"
OUTPUTS: Final = "outputs.bin"

_NAME: Final = registry.BackendName("recording", "certificate")
"""The backend's name while outcomes are replayed, whichever backend computed them."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The contents of a certificate that determine its verdicts.

    Attributes:
        folder: where outcomes.jsonl and outputs.bin are, already checked.
        environment: what the outcomes were computed on, as in a run log's header.
        replayed: whether a recording was certified.
    """

    folder: Path
    environment: Mapping[str, Any]
    capabilities: Capabilities
    challenge: int | None
    replayed: bool = False
    substrate: Substrate = NO_SUBSTRATE
    waivers: Waivers = NO_WAIVERS


@dataclass(slots=True)
class _Replay:
    """The outcomes of a certificate as a backend; an unknown outcome is a breakdown."""

    evidence: Evidence
    _stored: StoredOutcomes | None = field(default=None)

    def environment(self) -> Environment:
        record = self.evidence.environment
        details: dict[str, Any] = {"recorded": dict(record)}
        version = f"{record['backend']} {record['version']}"
        return Environment("recording", version, record["adapter"], record["driver"], details)

    def capabilities(self) -> Capabilities:
        half = bool(self.evidence.environment["details"].get("half", False))
        return replace(self.evidence.capabilities, half_precision=half)

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        if self._stored is None:
            folder = self.evidence.folder
            text, outputs = (folder / OUTCOMES).read_bytes(), (folder / OUTPUTS).read_bytes()
            self._stored = read_outcomes(text, outputs, checked=True)
        for case in cases:
            outcome = self._stored.outcome(
                case, self.evidence.challenge, replayed=self.evidence.replayed
            )
            if isinstance(outcome, str):
                outcome = Breakdown(BreakdownKind.ERROR, outcome)
            yield outcome

    def close(self) -> None:
        self._stored = None


def _open(evidence: Evidence) -> OpenBackend:
    return in_process(_NAME, _Replay(evidence))


def judge_again(
    suite: Suite,
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    evidence: Evidence,
    limits: Limits,
) -> Generator[Verdict, None, None]:
    """Judge the outcome of each case of a plan, and yield each verdict as soon as it is reached.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a process could not be started, or a recording of the suite cannot be read.
    """
    expected = expectations(AUTO, _open(evidence), suite, plan, suite_paths)
    task = _ReplayTask(evidence, expected)
    judge_backend = registry.parse(REFERENCE)  # Runs the task, but computes no outcome.
    if execution_of(judge_backend, limits, judged=True) is Execution.IN_PROCESS:
        yield from task.verdicts(_open(evidence), plan)
        return
    # Processes and pipes are slow to import, and a small plan needs none of them.
    from dmlconf.engine.parallel import in_processes

    # No waivers here: they are for the certified device, and excuse no breakdown of this machine.
    verdicts = in_processes(plan, judge_backend, task, limits, lambda verdict: verdict)
    with closing(verdicts):
        for verdict, _ in verdicts:
            yield verdict


@dataclass(frozen=True, slots=True)
class _ReplayTask:
    """Judges the stored outcomes of cases, in a worker process or in this one."""

    evidence: Evidence
    expected: Expectations

    def __call__(
        self, backend: Backend
    ) -> Callable[[Sequence[PlannedCase]], Iterator[Verdict | Raised]]:
        from dmlconf.workers.worker import with_errors

        ready = _open(self.evidence)
        return with_errors(lambda batch: self.verdicts(ready, batch))

    def verdicts(
        self, ready: OpenBackend, plan: Sequence[PlannedCase]
    ) -> Generator[Verdict, None, None]:
        options = JudgeOptions(self.evidence.substrate, self.evidence.waivers)
        return judged(plan, ready, self.expected.against, options)
