"""A function is applied to items in several processes, with results in order.

The tested code is in `dmlconf/workers/mapping.py`, `dmlconf/workers/spawning.py` and
`dmlconf/backends/process_end.py`.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from dmlconf.backends.errors import ProcessError
from dmlconf.workers.mapping import in_processes
from tests.workers.processes import running


class State:
    """What a process keeps between items: the number that it adds to each."""

    added = 0

    @classmethod
    def start(cls, added: int) -> None:
        if added < 0:
            raise ValueError("less than nothing")
        cls.added = added


def sum_of(item: int) -> tuple[int, int]:
    """Return the item plus `State.added`, and the process's number; larger items take longer."""
    time.sleep(0.05 * item)
    return item + State.added, os.getpid()


def raise_lookup_error(item: int) -> int:
    raise LookupError(f"no {item}")


class TwoPartError(Exception):
    """An exception that cannot be rebuilt from its `args`, as pickling does."""

    def __init__(self, part: str, other: str) -> None:
        super().__init__(f"{part} and {other}")


class PrefixedError(Exception):
    """An exception whose message changes when it is rebuilt from its `args`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no {name}")


def raise_two_part_error(item: int) -> int:
    raise TwoPartError("this", "that")


def raise_prefixed_error(item: int) -> int:
    raise PrefixedError("five")


def exit_with_code_7(item: int) -> int:
    os._exit(7)


def sleep_or_wait_for_a_sleeper(item: tuple[Path, bool]) -> None:
    """Leave this process's number in a folder and sleep, or return when another has done so."""
    folder, sleeps = item
    if sleeps:
        (folder / str(os.getpid())).touch()
        time.sleep(3600)
    while not list(folder.iterdir()):
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_the_order_of_the_items(jobs: int) -> None:
    with in_processes(jobs, State.start, (100,)) as mapped:
        first = list(mapped(sum_of, [4, 2, 0, 1, 3]))
        assert [result for result, _ in first] == [104, 102, 100, 101, 103]
        assert [result for result, _ in mapped(sum_of, [1])] == [101]
        assert list(mapped(sum_of, [])) == []
    # Only with one job does this process compute the results itself.
    assert (os.getpid() in {process for _, process in first}) == (jobs == 1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_exception_has_the_traceback_of_its_process(
    jobs: int,
) -> None:
    with (
        in_processes(jobs, State.start, (0,)) as mapped,
        pytest.raises(LookupError, match="no 5") as caught,
    ):
        list(mapped(raise_lookup_error, [5]))
    trace = "".join(traceback.format_exception(caught.value))  # Includes the notes.
    assert "in raise_lookup_error" in trace


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (raise_two_part_error, "TwoPartError: this and that"),
        (raise_prefixed_error, "PrefixedError: there is no five"),
    ],
)
def test_unpicklable_exception_keeps_text_and_traceback(
    function: Callable[[int], int], message: str
) -> None:
    with (
        in_processes(2, State.start, (0,)) as mapped,
        pytest.raises(RuntimeError, match=f"^{message}") as caught,
    ):
        list(mapped(function, [5]))
    assert f"in {function.__name__}" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_of_the_start_function_is_raised(jobs: int) -> None:
    with (
        pytest.raises(ValueError, match="less than nothing"),
        in_processes(jobs, State.start, (-1,)) as mapped,
    ):
        list(mapped(sum_of, [5]))


def test_a_process_that_dies_is_reported_with_its_exit_code() -> None:
    with (
        pytest.raises(ProcessError, match="a process ended with exit code 7"),
        in_processes(2, State.start, (0,)) as mapped,
    ):
        list(mapped(exit_with_code_7, [1, 2, 3]))


@pytest.mark.slow
def test_end_of_with_statement_ends_running_processes(
    tmp_path: Path,
) -> None:
    with in_processes(2, State.start, (0,)) as mapped:
        next(mapped(sleep_or_wait_for_a_sleeper, [(tmp_path, False), (tmp_path, True)]))
        [process] = [int(each.name) for each in tmp_path.iterdir()]
        assert running(process)
    assert not running(process)
