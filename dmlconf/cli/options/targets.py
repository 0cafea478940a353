"""Options that say where a run's cases run: on this machine, or on the workers of a scheduler.

Here a `Target` is what runs the cases, not the specification that a backend follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dmlconf.cli.common.command import option, options
from dmlconf.cli.common.configuration import BACKEND_GROUP
from dmlconf.cli.output.console import say
from dmlconf.documents.problems import printable
from dmlconf.engine.run import Run
from dmlconf.engine.target import Target, local_target

# Importing Dask takes a second.
if TYPE_CHECKING:
    from dmlconf.fleet.cluster import Cluster

__all__ = ["check_scheduler_options", "connected", "opened_targets", "scheduler_options"]

scheduler_options: Final = options(
    option(
        "--scheduler",
        metavar="ADDRESS|local:N",
        group=BACKEND_GROUP,
        help="Run on the workers of the Dask scheduler at tcp://HOST:PORT or tls://HOST:PORT, "
        "or, to try this out, on N local ones. Each worker uses --jobs processes.",
    ),
    option(
        "--by-adapter",
        is_flag=True,
        group=BACKEND_GROUP,
        help="Run all cases on each kind of worker, by adapter, driver and DirectML, and write a "
        "log for each, named by adapter and driver. Without this, workers that differ are an "
        "error.",
    ),
)


def check_scheduler_options(
    scheduler: str | None, *, by_adapter: bool, dump_folder: Path | None
) -> None:
    """Check the options about a scheduler.

    Raises:
        click.UsageError: the options cannot be combined, or `scheduler` is neither an address nor
            `local:N` with N from 1 to 9999.
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


@contextmanager
def opened_targets(
    cluster: Cluster | None, runs: Sequence[Run], *, by_adapter: bool
) -> Iterator[list[Target]]:
    """Open the backend on this machine or on the workers of a scheduler; yield the targets.

    Args:
        cluster: the connection to a scheduler; None for this machine.
        runs: a list of one run. `run_target.run_and_report` later takes it out, to free its plan.
        by_adapter: whether different devices become separate targets.

    Raises:
        BackendError: a backend or a worker cannot be used, or devices differ without `by_adapter`.
    """
    if cluster is None:
        yield [local_target(runs[0].how)]
        return
    from dmlconf.fleet.target import fleet_targets

    def tell(message: str) -> None:
        say(f"Warning: {message}")

    with fleet_targets(cluster, runs[0], tell, by_adapter=by_adapter) as targets:
        yield list(targets)


@contextmanager
def connected(scheduler: str | None) -> Iterator[Cluster | None]:
    """Yield a connection to the scheduler, if any, and close it after the block.

    Raises:
        BackendError: the scheduler cannot be reached, or Dask is not installed.
    """
    if scheduler is None:
        yield None
        return
    from dmlconf.fleet.cluster import Cluster

    with Cluster(scheduler) as cluster:
        yield cluster
