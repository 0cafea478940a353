"""`within` calls a function, such as one of a Dask cluster, and gives up if it does not return.

The tested code is in `dmlconf/fleet/cluster.py`.
"""

from __future__ import annotations

import threading
import time

import pytest

from dmlconf.fleet.cluster import within


def test_within_returns_the_result_of_the_function() -> None:
    assert within(10, lambda: 3) == 3


def test_within_raises_the_exception_of_the_function() -> None:
    with pytest.raises(ZeroDivisionError):
        within(10, lambda: 1 // 0)


def test_within_gives_up_a_function_that_does_not_end() -> None:
    never = threading.Event()
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="no answer within 0 seconds"):  # 0.1, rounded.
        within(0.1, never.wait)
    assert time.monotonic() - began < 5
    never.set()


def test_within_passes_on_a_timeout_error_of_the_function() -> None:
    def time_out() -> None:
        raise TimeoutError("Dask's own")

    with pytest.raises(TimeoutError, match="Dask's own"):
        within(10, time_out)
