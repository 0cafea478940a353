"""Where a run on a fleet is executed: on all workers of a scheduler, or on those of one device.

`Target` is the class of `engine.target`, not the specification that a backend follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from dmlconf import __version__
from dmlconf.backends.circumstances import chosen_circumstances
from dmlconf.backends.protocol import BackendError
from dmlconf.cases.model import PlannedCase
from dmlconf.catalogue.loader import catalogue_digest
from dmlconf.engine.against import Expectations
from dmlconf.engine.plan_verdicts import compares_unfused
from dmlconf.engine.run import Run
from dmlconf.engine.session import OpenBackend
from dmlconf.engine.stream import Verdicts
from dmlconf.engine.target import JudgePlan, Target
from dmlconf.excuses.known_fault_file import known_faults
from dmlconf.excuses.waivers import Waivers
from dmlconf.fleet.cluster import Cluster
from dmlconf.fleet.dispatch import Fleet, Member, same_device
from dmlconf.fleet.service import Job

__all__ = ["fleet_targets"]


def _job(run: Run) -> Job:
    how = run.how
    return Job(
        identifier=uuid4().hex,
        dmlconf=__version__,
        suite_digest=run.suite.digest,
        catalogue_digest=catalogue_digest(),
        paths=tuple(run.paths),
        operators=frozenset(planned.template.operator_name for planned in run.plan),
        challenge=run.suite.challenge,
        backend=how.backend,
        against=run.against,
        limits=how.limits,
        substrate=how.substrate,
        waivers=run.waivers,
        compare_unfused=how.compare_unfused,
        circumstances=how.circumstances,
        known_faults=how.known_faults,
    )


@contextmanager
def fleet_targets(
    cluster: Cluster, run: Run, warn: Callable[[str], None], *, by_adapter: bool
) -> Iterator[list[Target]]:
    """Prepare a scheduler's workers; yield a list with a `Target` for each kind of device.

    The job ends on the workers when the block does.

    Args:
        warn: gets messages, such as that a worker is lost or refused.
        by_adapter: whether workers may have different devices.

    Raises:
        BackendError: `Fleet.prepare` raises it, or devices differ and `by_adapter` is false.
    """
    job = _job(run)
    fleet = Fleet(cluster, job, warn)
    try:
        kinds: list[list[Member]] = []
        for member in fleet.prepare():
            kind = next(
                (k for k in kinds if same_device(k[0].prepared.record, member.prepared.record)), []
            )
            kind.append(member)
            if len(kind) == 1:
                kinds.append(kind)
        if len(kinds) > 1 and not by_adapter:
            raise _different_devices(kinds)
        labels = [_label(kind[0]) if by_adapter else "" for kind in kinds]
        for at, label in enumerate(labels):
            if label in labels[:at]:
                labels[at] = f"{label}-{at + 1}"
        pairs = zip(kinds, labels, strict=True)
        yield [_fleet_target(fleet, job, kind, label) for kind, label in pairs]
    finally:
        fleet.close()


def _fleet_target(fleet: Fleet, job: Job, members: Sequence[Member], label: str) -> Target:
    prepared = members[0].prepared

    def execute(cases: object) -> Any:
        raise AssertionError("a scheduler's workers run the cases")

    def judge(expected: Expectations, waivers: Waivers) -> JudgePlan:
        def judged(plan: Sequence[PlannedCase]) -> Verdicts:
            for verdict, batch in fleet.verdicts(plan, members, waivers):
                if batch is not None:
                    for recording, stale in zip(expected.recordings, batch.stale, strict=False):
                        recording.stale += stale
                yield verdict

        return judged

    backend = OpenBackend(
        job.backend,
        prepared.environment,
        prepared.capabilities,
        execute,
        lambda: None,
        known_faults(prepared.environment),
    )
    under = chosen_circumstances(job.circumstances, prepared.capabilities, str(job.backend))
    unfused = compares_unfused(job.compare_unfused, prepared.capabilities)
    records = tuple(member.record for member in members)
    return Target(backend, judge, under, unfused, records, label)


def _different_devices(kinds: Sequence[Sequence[Member]]) -> BackendError:
    lines = ["the scheduler's workers have different adapters, drivers or DirectML files:"]
    for kind in kinds:
        environment = kind[0].prepared.environment
        names = ", ".join(member.info.name for member in kind)
        device = f"{environment.adapter or 'no adapter'}, driver {environment.driver or 'none'}"
        lines.append(f"  {names}: {device}, {environment.backend} {environment.version}")
    hint = "--by-adapter runs all cases on each kind, and writes a log for each"
    return BackendError("\n".join(lines), hint)


def _label(member: Member) -> str:
    environment = member.prepared.environment
    text = "-".join(filter(None, (environment.adapter or environment.backend, environment.driver)))
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-").lower()
