"""The cache of checked case files gives the same plans as the files themselves.

The tested code is in `dmlconf/cases/loading/validated.py` and `dmlconf/cases/loading/expansion.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dmlconf.cases.loading import validated
from dmlconf.cases.loading.expansion import Expansion, UnstorableError
from dmlconf.cases.loading.loader import Suite, load_suite, require_valid
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.documents.repeats import with_repeats, without_repeats
from dmlconf.documents.store import Store
from dmlconf.resources import cases_directory
from dmlconf.tensors.datatypes import DataType

MATRIX = """\
operator: GATHER
tags: [mine]
cases:
  - name: single
    desc:
      InputTensor: {DataType: FLOAT32, Sizes: [1, 1, 1, 3], values: [1, 2, 3]}
      IndicesTensor: {DataType: UINT32, Sizes: [1, 1, 1, 1], values: [0]}
      OutputTensor: {DataType: FLOAT32, Sizes: [1, 1, 1, 1]}
      Axis: 3
      IndexDimensions: 1
  - name: many
    matrix:
      DataType: [FLOAT32, FLOAT16]
      Axis: [3]
      Sizes: [[1, 1, 1, 3], [1, 1, 1, 2]]
      Pairs: "=[(1, 2), (1.0, 2)]"
    desc:
      InputTensor: {DataType: =DataType, Sizes: =Sizes, fill: {sequence: {}}}
      IndicesTensor: {DataType: UINT32, Sizes: [1, 1, 1, 1], values: [0]}
      OutputTensor: {DataType: =DataType, Sizes: [1, 1, 1, 1]}
      Axis: =Axis
      IndexDimensions: 1
"""

CASE_COUNT = 1 + 2 * 1 * 2 * 2


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gather" / "own.yaml"
    path.parent.mkdir()
    path.write_text(MATRIX, "utf-8")
    return path


def description(suite: Suite) -> list[object]:
    """Return all that a plan says; `repr` shows the types of parameters."""
    templates = [
        (t.identifier, t.operator_name, t.index, repr(t.data), t.tags, t.about)
        for t in suite.templates
    ]
    cases = [(case.identifier, repr(case.parameters)) for case in suite.plan()]
    return [suite.digest, templates, cases]


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["gather", "convolution", "resample3", "fill_value_sequence"])
def test_cached_files_give_the_same_plan(store: Store, operator: str) -> None:
    paths = [cases_directory() / operator]
    fresh, first, second = (load_suite(paths, store=each) for each in (None, store, store))
    assert second.expansions
    assert description(fresh) == description(first) == description(second)


def test_a_cached_file_is_not_read_again(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_suite([file], store=store)
    monkeypatch.setattr("dmlconf.cases.loading.loader.read_document", None)
    suite = load_suite([file], store=store)
    assert len(list(suite.plan())) == CASE_COUNT
    assert suite.valid == frozenset(suite.templates)


def test_a_file_with_changed_content_is_checked_again(store: Store, file: Path) -> None:
    load_suite([file], store=store)
    file.write_text(MATRIX.replace("Axis: 3\n", "Axes: 3\n"), "utf-8")
    with pytest.raises(InvalidFilesError, match="unknown field `Axes`"):
        load_suite([file], store=store)


def test_another_checks_digest_makes_cached_files_unknown(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_suite([file], store=store)
    assert validated.Validated(store).get(file.read_bytes()) is not None
    monkeypatch.setattr(validated, "checks_digest", lambda: b"another")
    assert validated.Validated(store).get(file.read_bytes()) is None


def test_invalid_files_are_never_cached(store: Store, file: Path) -> None:
    file.write_text(MATRIX.replace("Axis: 3\n", "Axis: x\n"), "utf-8")
    for _ in range(2):
        with pytest.raises(InvalidFilesError):
            load_suite([file], store=store)
    assert not store.folder.exists()


def test_malformed_content_of_the_cache_is_replaced(store: Store, file: Path) -> None:
    load_suite([file], store=store)
    (entry,) = (path.stem for path in store.folder.iterdir())
    data, lines, expansions, valid = with_repeats(store.get(entry))
    malformed: list[Any] = [
        [{}, [], [], []],
        [{"cases": [1]}, [1], [["a"]], [True]],
        [data, lines[1:], expansions, valid],
        [data, lines, expansions[1:], valid],
        [data, lines, expansions, valid[1:]],
    ]
    for content in [1, [], *map(without_repeats, malformed)]:
        store.put(entry, content)
        assert len(list(load_suite([file], store=store).plan())) == CASE_COUNT
        assert store.get(entry) != content


def test_problems_of_a_cached_file_name_their_line(store: Store, file: Path) -> None:
    file.write_text(MATRIX.replace("Axis: 3\n", "Axis: 4\n"), "utf-8")
    suites = [load_suite([file], store=each) for each in (None, store, store)]
    for suite in suites:
        with pytest.raises(InvalidFilesError, match=r"own\.yaml:9:13: .*breaks axis-in-range"):
            require_valid(suite, list(suite.plan()))


def test_stored_values_of_parameters_keep_their_types() -> None:
    rows = [
        {"a": value}
        for value in (
            1,
            1.0,
            True,
            None,
            "1",
            DataType.INT8,
            (1, (2,)),
            [1],
            {"b": (1,)},
            -0.0,
            0.0,
        )
    ]
    expansion = Expansion.restored(Expansion.of(rows).stored())
    assert [repr(expansion.parameters(index)) for index in range(len(rows))] == list(
        map(repr, rows)
    )


def test_storing_an_unsupported_type_is_an_error() -> None:
    with pytest.raises(UnstorableError):
        Expansion.of([{"a": object()}]).stored()
