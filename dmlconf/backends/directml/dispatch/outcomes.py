"""Run cases in batches, and turn results and errors into outcomes.

If the device is removed or hangs, the batch and all later cases break down. If a batch of several
cases fails for another reason, its cases run again one by one. They also do if a guard band or an
input has changed, since the memory of another case is adjacent.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Final, NoReturn

from dmlconf.backends.directml.api.hresult import HResultError, is_removal
from dmlconf.backends.directml.api.vtable import ACCESS_VIOLATION, NativeCrashError
from dmlconf.backends.directml.devices.fence import FenceTimeoutError
from dmlconf.backends.directml.devices.messages import InfoQueue, with_messages
from dmlconf.backends.directml.dispatch.batch import Batch, Prepared
from dmlconf.backends.directml.dispatch.executor import Executor, Result
from dmlconf.backends.directml.dispatch.graph import NodeRefusalError
from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    FaultKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.model import Case, ExpectedRejection

__all__ = ["Runner", "die", "failure"]

MOST_SECONDS: Final = 1.0
"""Seconds of compiling after which a batch runs, even if more cases fit."""

_REFUSING: Final = frozenset(
    {"CreateOperator", "CompileOperator", "CompileGraph", "CreateOperatorInitializer"}
)
"""Calls whose failure means that DirectML refuses the case, unless the device is gone or memory
runs out.
"""

_STRAYING: Final = frozenset({FaultKind.GUARD_BAND, FaultKind.INPUT})
"""Faults that another case of the batch may have caused."""


class Runner:
    """Runs cases in batches, each as large as `Batch` and `MOST_SECONDS` permit."""

    def __init__(self, executor: Executor, messages: InfoQueue | None = None) -> None:
        """Run on an executor; with `messages` of debug layers, each case alone."""
        self._executor = executor
        self._messages = messages
        self._device_loss: Outcome | None = None

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield one outcome for each case, in order; if DirectML crashes, the process ends."""
        try:
            yield from self._run(cases)
        except NativeCrashError as error:  # As when an operator is released.
            die(cases, error)

    def _run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        if self._messages is None:
            yield from self._batched(cases)
            return
        for case in cases:
            # Keep no operator: layers also report while one is created.
            self._executor.trim(0)
            self._messages.take()
            for outcome in self._batched([case]):
                yield with_messages(outcome, self._messages.take())

    def _batched(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        batch = Batch()
        # The outcomes of the cases so far, in order; None stands for a case in the batch.
        waiting: deque[Outcome | None] = deque()
        for case in cases:
            found = self._prepare(case)
            if isinstance(found, Prepared):
                if not batch.add(found):
                    yield from self._finish(batch, waiting)
                    batch = Batch()
                    batch.add(found)
                waiting.append(None)
                seconds = sum(member.prepared.seconds for member in batch)
                if seconds > MOST_SECONDS:
                    yield from self._finish(batch, waiting)
                    batch = Batch()
            elif waiting:
                waiting.append(found)
            else:
                yield found
        yield from self._finish(batch, waiting)

    def _finish(self, batch: Batch, waiting: deque[Outcome | None]) -> Iterator[Outcome]:
        outcomes = iter(self._outcomes(batch))
        while waiting:
            yield waiting.popleft() or next(outcomes)
        self._executor.trim()

    def _prepare(self, case: Case) -> Prepared | Outcome:
        if self._device_loss is not None:
            return self._device_loss
        began = perf_counter()
        try:
            prepared = self._executor.prepare(case)
        except HResultError as error:
            return self._failed(error, perf_counter() - began)
        except NativeCrashError as error:
            die([case], error)
        refused = isinstance(case.expectation, ExpectedRejection)
        if refused and not prepared.placement.holds_elements():
            # Its tensors are too small for their elements: it is not dispatched.
            return Outputs({}, prepared.seconds)
        return prepared

    def _outcomes(self, batch: Batch) -> Iterator[Outcome]:
        if self._device_loss is not None:
            yield from [self._device_loss] * len(batch)
            return
        if not len(batch):
            return
        began = perf_counter()
        try:
            results = self._executor.run(batch)
        except HResultError as error:
            outcome = self._failed(error, perf_counter() - began)
            if len(batch) == 1 or _loses_device(outcome):
                yield from [outcome] * len(batch)
            else:
                yield from self._singly(batch)
            return
        except NativeCrashError as error:
            die([member.prepared.case for member in batch], error)
        if len(batch) > 1 and any(map(_strayed, results)):
            yield from self._singly(batch)
            return
        share = (perf_counter() - began) / len(batch)
        for member, result in zip(batch, results, strict=True):
            seconds = member.prepared.seconds + share
            yield Outputs(result.arrays, seconds, result.faults, result.dispatch_seconds)

    def _singly(self, batch: Batch) -> Iterator[Outcome]:
        for member in batch:
            alone = Batch()
            alone.add(member.prepared)
            yield from self._outcomes(alone)

    def _failed(self, error: HResultError, seconds: float) -> Outcome:
        outcome = failure(error, seconds)
        if _loses_device(outcome):
            self._device_loss = outcome
        return outcome


def failure(error: HResultError, seconds: float) -> Outcome:
    """Return the outcome of a case after a failed call: a breakdown or a rejection."""
    if isinstance(error, FenceTimeoutError):
        return Breakdown(BreakdownKind.HANG, str(error), "", seconds)
    if error.call == "GetDeviceRemovedReason" or is_removal(error.hresult):
        message = f"the device was removed: {error}"
        return Breakdown(BreakdownKind.DEVICE_REMOVED, message, "", seconds)
    if error.name == "E_OUTOFMEMORY":
        return Breakdown(BreakdownKind.OUT_OF_MEMORY, str(error), "", seconds)
    if error.call in _REFUSING:
        node = error.node if isinstance(error, NodeRefusalError) else ""
        return Rejection(error.call, error.name, (), seconds, node)
    return Breakdown(BreakdownKind.ERROR, str(error), "", seconds)


def _loses_device(outcome: Outcome) -> bool:
    return isinstance(outcome, Breakdown) and outcome.device_lost


def _strayed(result: Result) -> bool:
    return any(fault.kind in _STRAYING for fault in result.faults)


def die(cases: Sequence[Case], error: NativeCrashError) -> NoReturn:
    """Say which cases ran, and end the process with the exit code of an access violation."""
    identifiers = cases[0].identifier
    if len(cases) > 1:
        identifiers += f" or one of the {len(cases) - 1} that ran with it"
    print(f"{identifiers}: {error}", file=sys.stderr, flush=True)
    os._exit(ACCESS_VIOLATION)
