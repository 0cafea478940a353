"""`FigureCache` stores records of what was computed for cases, such as figures of verdicts.

A file of the cache has the records of one case file. If they do not fit, the older half is dropped.

The tested code is in `dmlconf/judging/figure_cache.py`.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, Provenance
from dmlconf.documents.store import LARGEST_ENTRY, Store
from dmlconf.judging.figure_cache import CachedRecord, FigureCache, KnownJudgement

LONG_RECORD = "x" * (LARGEST_ENTRY // 10)
"""A record of which nine fit into a file."""


def save_records(folder: Path, *keys: str) -> None:
    cache = FigureCache(Store(folder))
    cache.unsaved += [
        CachedRecord("tile/tile/boundary", "figures", key, LONG_RECORD) for key in keys
    ]
    cache.close()


def keys_in(folder: Path) -> list[str]:
    """Return the keys of the records in the folder's only file."""
    (file,) = folder.iterdir()
    entry = Store(folder).get(file.stem)
    assert {name for name, records in entry.items() if records} <= {"figures"}
    return list(entry["figures"])


def test_records_of_later_runs_are_added(tmp_path: Path) -> None:
    save_records(tmp_path / "cache", "a", "b")
    save_records(tmp_path / "cache", "c")
    assert keys_in(tmp_path / "cache") == ["a", "b", "c"]


def test_records_of_runs_at_the_same_time_are_kept(tmp_path: Path) -> None:
    caches = [FigureCache(Store(tmp_path / "cache")) for _ in range(2)]
    for keys in ("ab", "cd"):
        for cache, key in zip(caches, keys, strict=True):
            cache.unsaved.append(CachedRecord("tile/tile/boundary", "figures", key, "x"))
            cache.save()
    assert sorted(keys_in(tmp_path / "cache")) == ["a", "b", "c", "d"]


def test_the_newer_half_is_kept_if_not_all_fit(tmp_path: Path) -> None:
    save_records(tmp_path / "cache", *map(str, range(8)))
    save_records(tmp_path / "cache", *map(str, range(8, 12)))
    assert keys_in(tmp_path / "cache") == ["6", "7", "8", "9", "10", "11"]


def test_after_two_overflows_a_run_keeps_no_more_records(tmp_path: Path) -> None:
    """Of the records 0 to 11, 6 to 11 are left; of these and 12 to 17, 12 to 17 are left."""
    save_records(tmp_path / "cache", "of an earlier run")
    cache = FigureCache(Store(tmp_path / "cache"))
    for keys in (range(12), range(12, 18), range(18, 30)):
        records = (
            CachedRecord("tile/tile/boundary", "figures", str(key), LONG_RECORD) for key in keys
        )
        cache.unsaved += records
        cache.save()
    cache.close()
    assert keys_in(tmp_path / "cache") == list(map(str, range(12, 18)))
    save_records(tmp_path / "cache", "of a later run")
    assert keys_in(tmp_path / "cache") == [*map(str, range(12, 18)), "of a later run"]


def test_a_record_too_large_for_a_file_is_not_kept(tmp_path: Path) -> None:
    cache = FigureCache(Store(tmp_path / "cache"))
    cache.unsaved.append(CachedRecord("tile/tile/boundary", "figures", "a", "x" * LARGEST_ENTRY))
    cache.close()
    assert keys_in(tmp_path / "cache") == []


FROM_FILE = """
operator: ELEMENT_WISE_ABS
cases:
  - name: read
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: {file: x.npy}}
      OutputTensor: {Sizes: [2], DataType: FLOAT32}
"""


def test_recalled_facts_depend_on_the_data_files(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(FROM_FILE)

    def case_of(numbers: list[float]) -> Case:
        np.save(tmp_path / "x.npy", np.array(numbers, np.float32), allow_pickle=False)
        return build(next(load_suite([file]).plan()))

    first = case_of([1, 2])
    cache = FigureCache(Store(tmp_path / "cache"))
    known_judgement = KnownJudgement({}, Provenance.REFERENCE, ())
    cache.add_judgement(first, key="a", figures_key="b", known=known_judgement)
    cache.close()
    for numbers, known in (([1.0, 2.0], True), ([1.0, math.nan], False)):
        case = case_of(numbers)
        FigureCache(Store(tmp_path / "cache")).recall(case)
        assert (case.recalled("facts") is not None) == known
