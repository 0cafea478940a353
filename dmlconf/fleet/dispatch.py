"""Prepare a scheduler's workers, run a plan on them, and yield the verdicts batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from dmlconf.backends.protocol import BackendError, Breakdown, BreakdownKind
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.excuses.waivers import Waivers
from dmlconf.fleet.assignments import Assignments, Loss
from dmlconf.fleet.cluster import Answer, Cluster, WorkerInfo
from dmlconf.fleet.service import Batch, Job, Prepared, Refusal, finish, prepare, run_cases
from dmlconf.judging.conclusion import broken_down
from dmlconf.verdicts.verdict import Verdict
from dmlconf.workers.interrupts import discarded_interrupts, grace

__all__ = ["Fleet", "Member", "same_device"]

_PREPARE_SECONDS: Final = 300.0
"""How many seconds a worker may take to load the suite and open its backend."""

_SPARE_SECONDS: Final = 60.0
"""How many seconds to wait for a batch beyond twice the time limits of its cases."""

_MOST_ATTEMPTS: Final = 3
"""A connected worker whose answers to `prepare` were lost this many times cannot be used."""

_WITHOUT_WORKERS_SECONDS: Final = 60.0
"""How many seconds to wait if there is no worker."""

_JOIN_SECONDS: Final = 5.0
"""How many seconds to wait for a worker with an adapter if only others are connected."""


@dataclass(frozen=True, slots=True)
class Member:
    """A worker that is prepared to run the job."""

    info: WorkerInfo
    prepared: Prepared

    @property
    def record(self) -> dict[str, Any]:
        """The worker in a log's header."""
        return {"name": self.info.name, "environment": self.prepared.record}


def same_device(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two environments have the same device, software and options."""
    from dmlconf.backends.subject import same_source

    return same_source(one, other)


class Fleet:
    """The workers of a scheduler that can run one job.

    Attributes:
        members: the prepared workers, by address.
    """

    def __init__(
        self, cluster: Cluster, job: Job, on_trouble: Callable[[str], None] = lambda message: None
    ) -> None:
        """Begin without members; `on_trouble` gets messages, such as that a worker is lost."""
        self._cluster = cluster
        self._job = job
        self._on_trouble = on_trouble
        self.members: dict[str, Member] = {}
        self._devices: tuple[Mapping[str, Any], ...] = ()
        self._preparing: dict[int, tuple[WorkerInfo, float]] = {}
        self._refused: set[str] = set()
        self._unreached: Counter[str] = Counter()

    def close(self) -> None:
        """End the job on the connected workers."""
        with discarded_interrupts():
            self._cluster.tell_all(finish, self._job.identifier)

    def prepare(self) -> list[Member]:
        """Prepare the connected workers with an adapter; return the prepared ones, sorted by name.

        A connected worker whose answer is lost is prepared again, at most 3 times in all.

        Raises:
            BackendError: no worker with an adapter connects within a minute, or 5 seconds if others
                are connected; a worker cannot run the job; or the scheduler is gone.
        """
        with_workers = monotonic()
        refusals: list[str] = []
        while True:
            self._prepare_new()
            if self._preparing:
                with_workers = monotonic()
            elif self.members or refusals:
                break
            elif monotonic() - with_workers > self._patience():
                raise self._no_workers()
            answer = self._cluster.answer(0.2)
            if answer is not None:
                refusals += self._admitted(answer)
            refusals += self._overdue_preparations()
            if not self._cluster.alive:
                raise BackendError(f"the scheduler {self._cluster.address} is gone")
        if refusals:
            raise BackendError("\n".join(refusals))
        self._devices = tuple(member.prepared.record for member in self.members.values())
        return sorted(self.members.values(), key=lambda member: member.info.name)

    def _patience(self) -> float:
        return _JOIN_SECONDS if self._cluster.others else _WITHOUT_WORKERS_SECONDS

    def _no_workers(self) -> BackendError:
        others = self._cluster.others
        there = f"{others:,} without one" if others else "no others"
        return BackendError(
            f"the scheduler {self._cluster.address} has no worker with an adapter, and {there}",
            "Start them with: dask worker ADDRESS --resources adapter=1",
        )

    def verdicts(
        self, plan: Sequence[PlannedCase], members: Iterable[Member], waivers: Waivers
    ) -> Generator[tuple[Verdict, Batch | None], None, None]:
        """Run the plan, and yield a verdict on each case when its batch is done.

        The first verdict of each batch comes with the batch, every other verdict with None.

        All workers with the device of `members` are used, new ones too. If the scheduler is gone,
        or there is no such worker for a minute, the rest of the plan gets no verdict.

        Args:
            members: some of those that `prepare` returned, all with one device.
            waivers: accepted failures, applied to the cases that end their workers.

        Raises:
            InvalidFilesError: a case of a matrix cannot be built.
            KeyboardInterrupt: there was an interrupt; running batches have had time to end.
            Exception: another error of dmlconf itself, which a worker sent.
        """
        device = next(iter(members)).prepared.record
        run = _Pass(Assignments(plan), self._members_like(device), device)
        with grace() as interrupt:
            while run.assignments.unfinished:
                if interrupt.requested:
                    yield from self._last_batches(run, waivers)
                    interrupt.deliver()
                yield from self._drop_lost(run, waivers)
                self._give(run)
                answer = self._cluster.answer(0.25)
                if answer is not None and answer.call in self._preparing:
                    for refusal in self._admitted(answer):
                        self._on_trouble(refusal)
                    run.members = self._members_like(run.device)
                elif answer is not None:
                    yield from self._returned(run, answer, waivers)
                if not self._can_continue(run):
                    return

    def _members_like(self, device: Mapping[str, Any]) -> dict[str, Member]:
        return {
            address: member
            for address, member in self.members.items()
            if same_device(device, member.prepared.record)
        }

    def _last_batches(self, run: _Pass, waivers: Waivers) -> Iterator[tuple[Verdict, Batch | None]]:
        """Yield the verdicts of running batches until all have ended, or the scheduler is gone."""
        while run.busy and self._cluster.alive:
            answer = self._cluster.answer(0.25)
            if answer is not None and answer.call not in self._preparing:
                yield from self._returned(run, answer, waivers)

    def _can_continue(self, run: _Pass) -> bool:
        if not self._cluster.alive:
            self._on_trouble(f"the scheduler {self._cluster.address} is gone")
            return False
        if run.members or self._preparing:
            run.with_workers = monotonic()
        elif monotonic() - run.with_workers > _WITHOUT_WORKERS_SECONDS:
            self._on_trouble(f"the scheduler {self._cluster.address} has no workers left")
            return False
        return True

    def _give(self, run: _Pass) -> None:
        self._prepare_new()
        for refusal in self._overdue_preparations():
            self._on_trouble(refusal)
        for address in run.members:
            if address in run.busy:
                continue
            batch = run.assignments.batch(address)
            if batch:
                names = [planned.identifier for planned in batch]
                call = self._cluster.call(address, run_cases, self._job.identifier, names)
                # A case may take its time limit twice, since it may be retried alone.
                patience = _SPARE_SECONDS + 2 * self._job.limits.timeout * len(batch)
                run.busy[address] = call, monotonic(), monotonic() + patience

    def _drop_lost(self, run: _Pass, waivers: Waivers) -> Iterator[tuple[Verdict, None]]:
        now = monotonic()
        for address, member in list(run.members.items()):
            overdue = address in run.busy and now > run.busy[address][2]
            if address in self._cluster.workers and not overdue:
                continue
            yield from self._reassign(
                run, member, waivers, "does not answer" if overdue else "is gone"
            )
            if overdue:
                self._refused.add(address)

    def _reassign(
        self, run: _Pass, member: Member, waivers: Waivers, why: str
    ) -> Iterator[tuple[Verdict, None]]:
        address, name = member.info.address, member.info.name
        run.members.pop(address, None)
        self.members.pop(address, None)
        if address in run.busy:
            self._cluster.forget(run.busy.pop(address)[0])
        self._on_trouble(f"worker {name} {why}; others take over its cases")
        for loss in run.assignments.reassign(address, name):
            yield _broken(loss, waivers), None

    def _returned(
        self, run: _Pass, answer: Answer, waivers: Waivers
    ) -> Iterator[tuple[Verdict, Batch | None]]:
        member = run.members.get(answer.worker)
        if member is None or run.busy.get(answer.worker, (0,))[0] != answer.call:
            return
        if answer.lost:
            if answer.done:  # The worker finished its cases, so these did not end it.
                run.assignments.give_back(answer.worker)
            why = "cannot be reached" if answer.done else "is gone"
            yield from self._reassign(run, member, waivers, why)
            return
        if answer.error is not None:
            raise answer.error
        _, began, _ = run.busy.pop(answer.worker)
        if isinstance(answer.value, Refusal):
            run.assignments.give_back(answer.worker)
            del run.members[answer.worker], self.members[answer.worker]
            if not answer.value.again:
                self._refused.add(answer.worker)
                self._on_trouble(f"worker {member.info.name} gave up: {answer.value.message}")
            return
        batch: Batch = answer.value
        run.assignments.done(answer.worker, monotonic() - began)
        for index, verdict in enumerate(batch.verdicts):
            yield verdict.ran(worker=member.info.name), None if index else batch

    def _prepare_new(self) -> None:
        known = {info.address for info, _ in self._preparing.values()}
        for address, info in self._cluster.workers.items():
            if address not in known and address not in self.members | dict.fromkeys(self._refused):
                call = self._cluster.call(address, prepare, self._job)
                self._preparing[call] = info, monotonic() + _PREPARE_SECONDS

    def _admitted(self, answer: Answer) -> list[str]:
        """Handle a worker's answer to `prepare`; return messages if the worker is refused."""
        info, _ = self._preparing.pop(answer.call)
        if info.address not in self._cluster.workers:
            return []  # Its process may restart with another address.
        if answer.lost:
            self._unreached[info.address] += 1
            if self._unreached[info.address] < _MOST_ATTEMPTS:
                return []
        reason = "it cannot be reached" if answer.lost else None
        if answer.error is not None:
            reason = str(answer.error)
        if isinstance(answer.value, Refusal):
            reason = answer.value.message
        elif isinstance(answer.value, Prepared):
            known = self._devices or (answer.value.record,)
            if any(same_device(each, answer.value.record) for each in known):
                self.members[info.address] = Member(info, answer.value)
                return []
            reason = "its adapter, driver or DirectML differs from that of the run"
        self._refused.add(info.address)
        return [f"worker {info.name} ({info.address}) cannot be used: {reason}"]

    def _overdue_preparations(self) -> list[str]:
        """Give up workers that are gone or too slow to prepare; return messages about slow ones."""
        messages = []
        for call, (info, deadline) in list(self._preparing.items()):
            if info.address not in self._cluster.workers:
                self._cluster.forget(call)
                del self._preparing[call]
            elif monotonic() > deadline:
                self._cluster.forget(call)
                del self._preparing[call]
                self._refused.add(info.address)
                messages.append(
                    f"worker {info.name} ({info.address}) was not ready after "
                    f"{_PREPARE_SECONDS:.0f} seconds"
                )
        return messages


class _Pass:
    """The state of one pass over a plan.

    Attributes:
        members: the workers that the pass uses, by address.
        device: the environment of one member, as in a log's header; all members have its device.
        busy: for each worker with a batch, the number of its call, its start and its deadline.
        with_workers: when a worker was last there or being prepared, by `time.monotonic`.
    """

    def __init__(
        self, assignments: Assignments, members: dict[str, Member], device: Mapping[str, Any]
    ) -> None:
        self.assignments = assignments
        self.members = members
        self.device = device
        self.busy: dict[str, tuple[int, float, float]] = {}
        self.with_workers = monotonic()


def _broken(loss: Loss, waivers: Waivers) -> Verdict:
    case = valid_case(loss.case)
    names = ", ".join(loss.workers)
    message = f"{len(loss.workers)} workers were lost while running it: {names}"
    breakdown = Breakdown(BreakdownKind.CRASH, message)
    verdict = broken_down(case, breakdown, waivers)
    return verdict.ran(worker=loss.workers[-1])
