"""Where a run is executed: on a backend of this machine, or by the workers of a scheduler.

This `Target` is not the specification that a backend follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dmlconf.backends.circumstances import Circumstance, chosen_circumstances
from dmlconf.backends.protocol import BackendError
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.against import Expectations
from dmlconf.engine.plan_verdicts import compares_unfused, verdicts
from dmlconf.engine.run import How
from dmlconf.engine.session import OpenBackend, open_backend
from dmlconf.engine.stream import Verdicts
from dmlconf.excuses.waivers import Waivers
from dmlconf.judging.conclusion import JudgeOptions

__all__ = ["JudgePlan", "Target", "local_target"]

JudgePlan = Callable[[Sequence[PlannedCase]], Verdicts]
"""Runs cases, and yields a verdict on each."""


@dataclass(frozen=True, slots=True)
class Target:
    """What runs the cases of one run log: this machine, or workers with the same device.

    Attributes:
        backend: the tested backend; its `close` releases what only this target holds.
        judge: returns a function that runs cases and yields verdicts, given the source of expected
            outcomes and the waivers.
        compare_unfused: whether graphs' nodes also run one by one.
        workers: the scheduler's workers, for the log's header; empty on this machine.
        label: with `--by-adapter`, a part of the names of this target's files; otherwise empty.
    """

    backend: OpenBackend
    judge: Callable[[Expectations, Waivers], JudgePlan]
    circumstances: tuple[Circumstance, ...] = ()
    compare_unfused: bool = False
    workers: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    label: str = ""

    @property
    def decided(self) -> dict[str, Any]:
        """The options of the log's header on circumstances and unfused runs."""
        under = list(self.circumstances)
        unfused = {"compare_unfused": True} if self.compare_unfused else {}
        return unfused | ({"circumstances": under} if under else {})


def local_target(how: How, *, judged: bool = True) -> Target:
    """Open a backend of this machine.

    Raises:
        BackendError: the backend cannot be used, or lacks a circumstance that was named.
    """
    backend = open_backend(how.backend, how.limits, judged=judged)
    under: tuple[Circumstance, ...] = ()
    unfused = False
    if judged:
        try:
            under = chosen_circumstances(how.circumstances, backend.capabilities, str(how.backend))
        except BackendError:
            backend.close()
            raise
        unfused = compares_unfused(how.compare_unfused, backend.capabilities)

    def judge(expected: Expectations, waivers: Waivers) -> JudgePlan:
        options = JudgeOptions(how.substrate, waivers, unfused, under, how.known_faults, how.cache)
        return partial(
            verdicts, backend=backend, expected=expected, limits=how.limits, options=options
        )

    return Target(backend, judge, under, unfused)
