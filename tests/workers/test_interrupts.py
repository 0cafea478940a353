"""A block that defers or discards interrupts does not take away the limit of a `grace` block.

The tested code is in `dmlconf/workers/interrupts.py`.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

START = """
import signal
import threading
from contextlib import suppress

from dmlconf.workers.interrupts import BLOCK, grace, treat_termination_as_interrupt

def wait_for_timer():
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()

treat_termination_as_interrupt()
"""
"""The beginning of a script; the only other thread is the timer of a `grace` block."""


def lines_of(script: str, block: str) -> list[str]:
    text = START.replace("BLOCK", block) + script.replace("BLOCK", block)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("block", ["deferred_interrupts", "discarded_interrupts"])
def test_grace_that_ends_in_a_block_interrupts_after_it(block: str) -> None:
    script = """
try:
    with grace():
        signal.raise_signal(signal.SIGINT)
        with BLOCK():
            wait_for_timer()
            print("end of the block")
        print("after the block")
except KeyboardInterrupt:
    print("interrupted")
"""
    assert lines_of(script, block) == ["end of the block", "interrupted"]


@pytest.mark.slow
@pytest.mark.parametrize("block", ["deferred_interrupts", "discarded_interrupts"])
def test_grace_that_ends_in_a_failing_block_does_not_hide_the_next_interrupt(block: str) -> None:
    script = """
with suppress(KeyboardInterrupt), grace() as interrupt:
    signal.raise_signal(signal.SIGINT)
    with suppress(ValueError), BLOCK():
        wait_for_timer()
        raise ValueError
    interrupt.deliver()
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert lines_of(script, block) == ["interrupted"]


def test_interrupts_in_a_block_that_discards_them_have_no_effect() -> None:
    script = """
with grace() as interrupt:
    with BLOCK():
        signal.raise_signal(signal.SIGINT)
    print(interrupt.requested)
"""
    assert lines_of(script, "discarded_interrupts") == ["False"]
