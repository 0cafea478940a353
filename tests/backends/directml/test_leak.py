"""A leak is memory that grows, after the first 400 dispatches, by at least 4 KiB per dispatch.

The tested code is in `dmlconf/backends/directml/circumstances/long.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.backends.directml.circumstances.long import leak

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    "sizes",  # The bytes of the process's memory after each 100 dispatches.
    [
        [MIB] * 10,
        [n * MIB for n in (1, 9, 20, 30, 30, 30, 30, 30, 30, 31)],
        [n * MIB for n in (1, 2, 3, 4, 5, 6, 7, 7, 8, 9)],
        [n * MIB for n in (1, 2, 3, 4, 5, 4, 5, 6, 5, 9)],
        [MIB + 100 * (4 * KIB - 1) * n for n in range(10)],
    ],
    ids=["constant", "grows-at-first", "stops-once", "up-and-down", "a-byte-less-than-a-leak"],
)
def test_small_or_interrupted_growth_is_no_leak(sizes: list[int]) -> None:
    assert leak(sizes) == ()


@pytest.mark.parametrize("slope", [4, 64])
def test_a_leak_is_reported_with_its_slope(slope: int) -> None:
    [fault] = leak([MIB + 100 * slope * KIB * n for n in range(10)])
    assert fault.message == (
        f"the process's memory grows by {slope}.0 KiB per dispatch after the first 400 of 1,000"
    )


def test_growth_in_the_first_400_dispatches_is_ignored() -> None:
    [fault] = leak([MIB, 30 * MIB, 20 * MIB, *(40 * MIB + 100 * 4 * KIB * n for n in range(7))])
    assert "grows by 4.0 KiB per dispatch" in fault.message
