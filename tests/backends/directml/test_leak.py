"""A leak grows memory in each 100 dispatches after the first 400, by 4 KiB or more per dispatch.

The tested code is in `dmlconf/backends/directml/circumstances/long.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.backends.directml.circumstances.long import leak

MIB = 1 << 20


@pytest.mark.parametrize(
    "sizes",
    [
        [MIB] * 10,
        [n * MIB for n in (1, 9, 20, 30, 30, 30, 30, 30, 30, 31)],
        [n * MIB for n in (1, 2, 3, 4, 5, 4, 5, 6, 5, 9)],
        [MIB + 1024 * n for n in range(10)],
    ],
    ids=["constant", "grows-at-first", "up-and-down", "a-little"],
)
def test_growth_that_is_small_or_stops_for_100_dispatches_is_no_leak(sizes: list[int]) -> None:
    assert leak(sizes) == ()


def test_a_leak_is_reported_with_its_slope() -> None:
    [fault] = leak([(7 + hundred) * 25 * MIB // 4 for hundred in range(10)])
    assert fault.message == (
        "the process's memory grows by 64.0 KiB per dispatch over 1,000 dispatches"
    )
