"""The target of a run: a backend of this machine, or the workers of a scheduler."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import click

from dmlconf import __version__
from dmlconf.backends.circumstances import ALL, Circumstance, chosen_circumstances
from dmlconf.backends.protocol import BackendError, Capabilities
from dmlconf.backends.registry import BackendName
from dmlconf.cases.model import PlannedCase
from dmlconf.catalogue.loader import catalogue_digest
from dmlconf.cli.command import option, options
from dmlconf.cli.configuration import BACKEND_GROUP
from dmlconf.cli.console import say, warn
from dmlconf.documents.problems import printable
from dmlconf.runner.against import Expectations
from dmlconf.runner.conclusion import JudgeOptions
from dmlconf.runner.execution import Limits
from dmlconf.runner.known_faults import known_faults
from dmlconf.runner.plan_verdicts import compares_unfused, verdicts
from dmlconf.runner.session import OpenBackend, open_backend
from dmlconf.runner.substrate import Substrate
from dmlconf.runner.verdict import Verdict
from dmlconf.runner.waivers import Waivers

# Dask takes a second to import, and few runs have a scheduler.
if TYPE_CHECKING:
    from dmlconf.cli.run_target import TargetRun
    from dmlconf.fleet.cluster import Cluster
    from dmlconf.fleet.dispatch import Fleet, Member
    from dmlconf.fleet.service import Job

__all__ = [
    "RunKind",
    "Target",
    "check_scheduler_options",
    "connected",
    "labelled",
    "opened_targets",
    "scheduler_options",
]

Judge = Callable[[Sequence[PlannedCase]], Generator[Verdict, None, None]]

scheduler_options: Final = options(
    option("--scheduler", metavar="ADDRESS|local:N", group=BACKEND_GROUP,
           help="Run on the workers of the Dask scheduler at tcp://HOST:PORT or tls://HOST:PORT, "
           "or, to try this out, on N local ones. Each worker uses --jobs processes."),
    option("--by-adapter", is_flag=True, group=BACKEND_GROUP,
           help="If the workers' adapters or drivers differ, run all cases on each kind, and write "
           "a log for each, named by the adapter. Without this, such workers are an error."),
)  # fmt: skip
"""Add the options that name a scheduler."""


@dataclass(frozen=True, slots=True)
class Target:
    """The part of the machines that runs the cases of one log.

    Attributes:
        backend: the tested backend; its `close` releases what only this target holds.
        judge: returns a function that runs cases and yields a verdict on each.
        circumstances: those under which each case also runs.
        compare_unfused: whether each graph's nodes also run one by one.
        workers: the scheduler's workers, as in the log's header; empty on this machine.
        label: distinguishes this target's files from those of others; empty for a single target.
    """

    backend: OpenBackend
    judge: Callable[[Expectations, Waivers], Judge]
    circumstances: tuple[Circumstance, ...] = ()
    compare_unfused: bool = False
    workers: tuple[Mapping[str, Any], ...] = ()
    label: str = ""


def check_scheduler_options(
    scheduler: str | None, *, by_adapter: bool, dump_folder: Path | None
) -> None:
    """Raise for options that cannot be combined.

    Raises:
        click.UsageError: options cannot be combined, or the address is invalid.
    """
    if scheduler is None:
        if by_adapter:
            raise click.UsageError(
                "--by-adapter groups the workers of a scheduler: add --scheduler"
            )
        return
    if not re.fullmatch(r"local:[1-9][0-9]{0,3}|[a-z]+://.+", scheduler):
        message = f"{scheduler} is neither an address such as tcp://HOST:PORT nor local:N"
        raise click.BadParameter(printable(message), param_hint="--scheduler")
    if dump_folder is not None:
        message = "--dump runs cases on this machine: use run --failed=LOG --dump on a worker"
        raise click.UsageError(message)


@dataclass(frozen=True, slots=True)
class RunKind:
    """How cases run, on any machine.

    Attributes:
        name: the backend.
        limits: of each machine.
        substrate: the layers below DirectML.
        compare_unfused: whether each graph's nodes also run one by one; None for only on backends
            that compile graphs.
        circumstances: names, as `chosen_circumstances` takes them.
    """

    name: BackendName
    limits: Limits
    substrate: Substrate
    compare_unfused: bool | None
    circumstances: tuple[str, ...]


@contextmanager
def opened_targets(
    cluster: Cluster | None, kind: RunKind, run: TargetRun, *, by_adapter: bool
) -> Iterator[Sequence[Target]]:
    """Open this machine's backend, or let a scheduler's workers open theirs.

    Args:
        cluster: the connection to a scheduler; None for this machine.
        kind: how cases run.
        run: the run to prepare.
        by_adapter: whether workers with different devices become separate targets.

    Raises:
        BackendError: a backend or a worker cannot be used, or devices differ.
    """
    if cluster is None:
        yield [_local_target(kind)]
        return
    with _fleet_targets(cluster, _job(kind, run), by_adapter=by_adapter) as targets:
        yield targets


def _local_target(kind: RunKind) -> Target:
    backend = open_backend(kind.name, kind.limits, judged=True)
    try:
        under = _circumstances(kind.circumstances, backend.capabilities, kind.name)
    except BackendError:
        backend.close()
        raise

    unfused = compares_unfused(kind.compare_unfused, backend.capabilities)

    def judge(expected: Expectations, waivers: Waivers) -> Judge:
        options = JudgeOptions(kind.substrate, waivers, unfused, under)
        return partial(
            verdicts, backend=backend, expected=expected, limits=kind.limits, options=options
        )

    return Target(backend, judge, under, unfused)


def _circumstances(
    names: Sequence[str], capabilities: Capabilities, backend: BackendName
) -> tuple[Circumstance, ...]:
    under = chosen_circumstances(names, capabilities, str(backend))
    if ALL in names and not under:
        warn(f"{backend} has no circumstances: --circumstances all has no effect")
    return under


def _job(kind: RunKind, run: TargetRun) -> Job:
    from dmlconf.fleet.service import Job

    return Job(
        identifier=uuid4().hex,
        dmlconf=__version__,
        suite_digest=run.suite.digest,
        catalogue_digest=catalogue_digest(),
        paths=tuple(map(str, run.paths)),
        operators=frozenset(planned.template.operator_name for planned in run.plan),
        challenge=run.suite.challenge,
        backend=kind.name,
        against=run.against,
        limits=kind.limits,
        substrate=kind.substrate,
        waivers=run.waivers,
        compare_unfused=kind.compare_unfused,
        circumstances=kind.circumstances,
    )


@contextmanager
def connected(scheduler: str | None) -> Iterator[Cluster | None]:
    """Connect to a scheduler, if one is named.

    Raises:
        BackendError: it cannot be reached, or Dask is not installed.
    """
    if scheduler is None:
        yield None
        return
    from dmlconf.fleet.cluster import Cluster

    with Cluster(scheduler) as cluster:
        yield cluster


@contextmanager
def _fleet_targets(cluster: Cluster, job: Job, *, by_adapter: bool) -> Iterator[list[Target]]:
    """Prepare a scheduler's workers; yield one target, or one per kind of device."""
    from dmlconf.fleet.dispatch import Fleet, same_device

    fleet = Fleet(cluster, job, lambda message: say(f"Warning: {message}"))
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

    def judge(expected: Expectations, waivers: Waivers) -> Judge:
        def judged(plan: Sequence[PlannedCase]) -> Generator[Verdict, None, None]:
            for verdict, batch in fleet.verdicts(plan, members, waivers):
                if batch is not None:
                    for recording, stale in zip(expected.recordings, batch.stale, strict=False):
                        recording.stale += stale
                yield verdict

        return judged

    backend = OpenBackend(
        job.backend, prepared.environment, prepared.capabilities, execute, lambda: None,
        known_faults(prepared.environment),
    )  # fmt: skip
    under = _circumstances(job.circumstances, prepared.capabilities, job.backend)
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


def labelled(path: Path | None, label: str) -> Path | None:
    """Return a path with a label appended to its stem: `run-nvidia.jsonl` for `run.jsonl`."""
    if path is None or not label:
        return path
    return path.with_name(f"{path.stem}-{label}{path.suffix}")
