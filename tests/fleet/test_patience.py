"""A call of a Dask cluster's function that does not return in time is given up."""

from __future__ import annotations

import threading
import time

import pytest

from dmlconf.fleet.cluster import within


def test_returns_what_the_function_returns() -> None:
    assert within(10, lambda: 3) == 3


def test_raises_what_the_function_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        within(10, lambda: 1 // 0)


def test_gives_up_a_function_that_does_not_end() -> None:
    never = threading.Event()
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="no answer within 0 seconds"):
        within(0.1, never.wait)
    assert time.monotonic() - began < 5
    never.set()


def test_distinguishes_a_time_limit_of_the_function_from_its_own() -> None:
    def refused() -> None:
        raise TimeoutError("Dask's own")

    with pytest.raises(TimeoutError, match="Dask's own"):
        within(10, refused)
