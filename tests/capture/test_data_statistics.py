"""Generated data of captured cases resembles the captured data.

Its range and share of zeros are about the same, and whole numbers stay whole.

The tested code is in `dmlconf/capture/data_statistics.py`, `dmlconf/capture/hooking/arrays.py` and
`dmlconf/capture/case_files.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.capture.captured import captured_from
from dmlconf.capture.case_files import write_cases
from dmlconf.capture.data_statistics import DataStatistics, following
from dmlconf.capture.hooking.arrays import StatisticsStore
from dmlconf.capture.journal import read_journal
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.fills import fill
from tests.cli.commands.test_capture import GRAPH, RELU, journal

RANDOM = np.random.default_rng(5)
COUNT = 20_000

MOST_OFF = 0.15
"""How far the least and the greatest number may be off, as a share of the range."""

MOST_ZEROS_OFF = 0.02
"""How far the share of zeros may be off."""


def generated_like(array: Array) -> Array:
    """Return data of the array's type and sizes, generated from its statistics."""
    statistics = DataStatistics.of(array)
    assert statistics is not None
    [(name, parameters)] = statistics.fill(1).items()
    data_type = next(each for each in DataType if each.dtype == array.dtype)
    return fill(name, array.shape, data_type, parameters)


@pytest.mark.parametrize(
    "array",
    [
        RANDOM.uniform(-3.5, 0.25, COUNT).astype(np.float32),
        RANDOM.uniform(0.001, 0.004, COUNT).astype(np.float16),
        RANDOM.integers(-7, 300, COUNT),
        RANDOM.integers(0, 255, COUNT).astype(np.float32),
        np.full(COUNT, 1.5, np.float32),
        np.full(COUNT, 2**64 - 1, np.uint64),
        np.tile([-(2**63), 2**63 - 1], COUNT),
        np.maximum(RANDOM.normal(0.5, 2, COUNT), 0).astype(np.float32),
        np.maximum(RANDOM.normal(-3, 2, COUNT), 0).astype(np.float32),
    ],
)
def test_generated_data_resembles_captured_data(
    array: Array,
) -> None:
    data = generated_like(array)
    assert data.dtype == array.dtype
    low, high = float(array.min()), float(array.max())
    near = MOST_OFF * (high - low)
    assert float(data.min()) == pytest.approx(low, abs=near)
    assert float(data.max()) == pytest.approx(high, abs=near)
    assert (data == 0).mean() == pytest.approx((array == 0).mean(), abs=MOST_ZEROS_OFF)
    assert bool((np.trunc(data) == data).all()) == bool((np.trunc(array) == array).all())


def test_statistics_ignore_numbers_that_are_not_finite() -> None:
    array = np.array([np.nan, 2.5, -np.inf, 1.25], np.float32)
    assert DataStatistics.of(array) == DataStatistics(
        low=1.25, high=2.5, zeros=0.0, whole=False, count=2
    )
    assert DataStatistics.of(array[:1]) is None


def test_statistics_do_not_replace_listed_values() -> None:
    listed: dict[str, Any] = {"values": [3, 1, 2]}
    assert (
        following(DataStatistics(low=0, high=3, zeros=0.25, whole=True, count=4), listed, 1)
        is listed
    )


def test_captured_cases_resemble_the_data_of_the_first_dispatch(tmp_path: Path) -> None:
    store = StatisticsStore()
    first = {"inputs": {"InputTensor": store.put(np.arange(6, dtype=np.float32) * 7)}}
    second = {"inputs": {"InputTensor": store.put(np.zeros(6, np.float32))}}
    whole = {"inputs": {"input-0": store.put(np.array([-0.5, 8.25], np.float32))}}
    nothing = {"inputs": {"input-0": store.put(np.array([np.nan], np.float32))}}
    path = journal(
        tmp_path / "journal",
        {"event": "compile", "number": 1, **RELU, "flags": 0},
        {"event": "compile", "number": 2, **GRAPH},
        {"event": "compile", "number": 3, **GRAPH, "flags": 0},
        {"event": "statistics", "number": 1, **first, "outputs": {}},
        {"event": "statistics", "number": 1, **second, "outputs": {}},
        {"event": "statistics", "number": 2, **whole, "outputs": {}},
        {"event": "statistics", "number": 3, **nothing, "outputs": {}},
    )
    captured = captured_from(read_journal(path))
    assert captured.dispatches == []
    write_cases(tmp_path / "out", captured, tmp_path, block_nodes=1)
    assert not list(tmp_path.rglob("*.npy"))
    cases = {c.identifier: c for c in map(valid_case, load_suite([tmp_path / "out"]).plan())}

    def ends(name: str, tensor: str) -> tuple[float, float]:
        data = cases[name].inputs()[tensor]
        return float(data.min()), float(data.max())

    low, high = ends("activation_relu/captured/float32-1x1x2x3", "InputTensor")
    assert (low, high) == (int(low), int(high))  # The first dispatch had whole numbers.
    assert high > 9  # The first dispatch reached 5 * 7, and the second only 0.
    # Data that follows no statistics is from -1 to 1.
    assert ends("graphs/captured/graph-1-of-2-nodes", "input-0")[1] > 1
    assert ends("graphs/captured/graph-2-of-2-nodes", "input-0")[1] <= 1
