"""If a batch of cases breaks down, only the case at fault does; the others run again.

The tested code is in `dmlconf/workers/pool.py`, `dmlconf/workers/process.py` and
`dmlconf/workers/worker.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.backends.protocol import BreakdownKind
from dmlconf.workers.pool import BATCH
from tests.backends.installing import plugin
from tests.workers.pools import breakdowns, run

pytestmark = pytest.mark.breakdown


BATCH_BACKEND = '''
"""A backend that runs a batch as one, as a device does with one list of commands.

With the option `crash@=40]` it crashes, before any outcome, in each batch with a case that has
`=40]` in its identifier. It writes its process and the identifiers of each batch into a file.
"""

import os
import re
import sys
import time

from dmlconf.backends.numpy.backend import create as reference, run_case
from dmlconf.backends.protocol import Breakdown, BreakdownKind


class Together:
    def __init__(self, options):
        self.fault, _, self.part = options.partition("@")
        self.environment = reference("").environment
        self.capabilities = reference("").capabilities

    def close(self):
        pass

    def run(self, cases):
        with open(os.environ["TOGETHER_LOG"], "a") as log:
            log.write(f"{os.getpid()} {' '.join(case.identifier for case in cases)}\\n")
        if any(self.part in case.identifier for case in cases):
            if self.fault == "crash":
                os.abort()
            if self.fault == "hang":
                time.sleep(3600)
            if self.fault == "raise":
                raise RuntimeError("something in the batch is wrong")
            if self.fault == "removed":
                yield from [Breakdown(BreakdownKind.DEVICE_REMOVED, "gone")] * len(cases)
                return
            if self.fault == "waited":
                yield from [Breakdown(BreakdownKind.HANG, "never done")] * len(cases)
                return
        yield from [run_case(case) for case in cases]


create = Together
'''


@pytest.fixture
def together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the plugin `together`; return its file, with a line for each batch."""
    plugin(tmp_path, monkeypatch, "together", BATCH_BACKEND)
    log = tmp_path / "together.txt"
    monkeypatch.setenv("TOGETHER_LOG", str(log))
    return log


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("crash", BreakdownKind.CRASH),
        ("hang", BreakdownKind.HANG),
        ("removed", BreakdownKind.DEVICE_REMOVED),
        ("waited", BreakdownKind.HANG),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_broken_batch_breaks_only_the_case_at_fault(
    tmp_path: Path, together: Path, fault: str, kind: BreakdownKind, workers: int
) -> None:
    backend = f"together:{fault}@=40]"
    broken = breakdowns(run(tmp_path, backend, 70, workers=workers, timeout=2))
    assert list(broken) == [40]
    assert broken[40].kind is kind
    calls = [line.split() for line in together.read_text("utf-8").splitlines()]
    with_fault = [call for call in calls if any(each.endswith("=40]") for each in call[1:])]
    # The case ran in its batch, then singly, then first in a new process, if it was not yet first.
    counts = [len(call) - 1 for call in with_fault]
    assert counts == [BATCH, 1, 1] or (workers == 2 and counts == [BATCH, 1])
    assert len({call[0] for call in with_fault}) == len(with_fault)
    alone = with_fault[-1][0]
    assert [call[0] for call in calls].count(alone) == 1
    assert max(len(call) - 1 for call in calls) == BATCH


def test_both_cases_at_fault_in_a_batch_are_found(tmp_path: Path, together: Path) -> None:
    broken = breakdowns(run(tmp_path, "together:crash@0]", 2 * BATCH))
    assert list(broken) == [0, 10, 20, 30]  # The first batch ends with case 15.
    processes = {line.split()[0] for line in together.read_text("utf-8").splitlines()}
    # Each of the 2 batches ends a process, and each case at fault at most two.
    assert len(processes) <= 2 + 2 * len(broken)


def test_exception_of_a_batch_breaks_only_its_case(tmp_path: Path, together: Path) -> None:
    broken = breakdowns(run(tmp_path, "together:raise@=5]", 40))
    assert list(broken) == [5]
    assert "something in the batch is wrong" in broken[5].message
    assert len({line.split()[0] for line in together.read_text("utf-8").splitlines()}) == 1
