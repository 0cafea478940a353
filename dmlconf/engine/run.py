"""A run as a frozen value: its cases, and how they run and are judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmlconf.backends.registry import BackendName
from dmlconf.cases.loading.loader import Suite
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.against import AUTO
from dmlconf.engine.shards import Selected
from dmlconf.excuses.substrate import NO_SUBSTRATE, Substrate
from dmlconf.excuses.waivers import Waiver
from dmlconf.judging.figure_cache import FigureCache
from dmlconf.workers.execution import Limits

if TYPE_CHECKING:
    from dmlconf.run_log.earlier import EarlierRun

__all__ = ["How", "Rounds", "Run"]


@dataclass(frozen=True, slots=True)
class How:
    """How each case runs and is judged.

    Attributes:
        limits: the resources that the run may use on each machine.
        substrate: the layers below DirectML, and what they cannot do.
        compare_unfused: whether graphs' nodes also run one by one; None means yes if the backend
            compiles graphs.
        circumstances: names of circumstances, as `chosen_circumstances` takes them.
        known_faults: whether a known fault of DirectML waives a failure.
        cache: the figures of earlier comparisons; if None, all outputs are compared.
    """

    backend: BackendName
    limits: Limits = field(default_factory=Limits)
    substrate: Substrate = NO_SUBSTRATE
    compare_unfused: bool | None = None
    circumstances: tuple[str, ...] = ()
    known_faults: bool = True
    cache: FigureCache | None = None


@dataclass(frozen=True, slots=True)
class Rounds:
    """Cases in rounds; a round is generated when the previous one has run.

    Attributes:
        expected: how many cases there will be; None if that is unknown.
    """

    rounds: Iterable[Sequence[PlannedCase]]
    expected: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run: its cases, backend, limits and options.

    Attributes:
        suite: the suite that the plan was selected from.
        paths: the paths of the suite, as given, for the log's header.
        suite_paths: the suite's files and folders; recordings are searched for there and in two
            folders above.
        plan: the whole plan, even if only a shard of it runs.
        chosen: the part of the plan that runs, or rounds of generated cases.
        against: what gives expected values that cases do not state, as `--against` takes it.
        repeat: how often to run each case, at least 1.
        shuffle: the seed of a random order; None keeps the order of the plan.
        retries: how often to run a failing case again.
        most_failures: the number of failing cases after which to stop; None for never.
        judged: whether outcomes are judged; if not, `repeat`, `shuffle`, `retries` and options of
            judging have no effect.
        options: the options that the user chose, for the log's header.
        earlier: the part of the run that its log has already; None for a new run.
    """

    suite: Suite
    paths: Sequence[str]
    suite_paths: Sequence[Path]
    plan: Sequence[PlannedCase]
    chosen: Selected | Rounds
    how: How
    against: str = AUTO
    waivers: tuple[Waiver, ...] = ()
    repeat: int = 1
    shuffle: int | None = None
    retries: int = 0
    most_failures: int | None = None
    judged: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    earlier: EarlierRun | None = None
