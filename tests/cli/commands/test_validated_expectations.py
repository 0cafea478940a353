"""`dmlconf validate` finds expectations that the reference contradicts, without a backend.

The tested code is in `dmlconf/cli/commands/writing/validate.py`, `dmlconf/expectations/checked.py`,
`dmlconf/expectations/valid_files.py` and `dmlconf/judging/contradictions.py`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.documents.store import Store
from dmlconf.expectations import checked
from dmlconf.expectations.valid_files import ValidFiles
from tests.cases.suites import MEAN
from tests.cli.process import dmlconf, dmlconf_here, write
from tests.engine.test_against import write_recording

STATED = """
operator: REDUCE
cases:
  - name: right
    desc: &mean
      InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [1, 2, 3, 5]}
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}
      Function: AVERAGE
      Axes: [3]
    expect: {OutputTensor: [2.75]}
  - note: Two of three are wrong.
    name: wrong
    matrix: {Mean: [999, 2.75, -1]}
    desc: *mean
    expect: {OutputTensor: "=(Mean,)"}
"""

LARGE = """
operator: REDUCE
cases:
  - name: large
    desc:
      InputTensor: {{Sizes: [1, 1, 1, 524288], DataType: FLOAT32, fill: {{constant: {{value: 1}}}}}}
      OutputTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32}}
      Function: AVERAGE
      Axes: [3]
    expect: {{OutputTensor: [{mean}]}}
"""
"""A mean of 2 MiB of ones."""

DISPUTE = "disputes: reference\n    note: A mean."

MATRIX = MEAN.replace("    desc:", "    matrix: {Axis: [3, 2]}\n    desc:").replace(
    "[3]\n", "[=Axis]\n"
)
"""The mean along axis 3, and along axis 2, for which the output's sizes are wrong."""


@pytest.fixture(scope="module")
def checked_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the catalogue, whose check takes a second, is known to be valid."""
    folder = tmp_path_factory.mktemp("checked")
    write(folder)
    cache = folder / "cache"
    done = dmlconf_here(folder, "validate", "tile.yaml", DMLCONF_CACHE=str(cache))
    assert done.returncode == 0, done.stderr
    return cache


@pytest.fixture
def cache(tmp_path: Path, checked_catalogue: Path) -> Path:
    """A cache of the test's own, without its files."""
    return Path(shutil.copytree(checked_catalogue, tmp_path / "cache"))


def test_wrong_expectation_is_a_problem_at_its_line(tmp_path: Path) -> None:
    write(tmp_path, STATED, "reduce.yaml")
    done = dmlconf_here(tmp_path, "validate", "reduce.yaml", "--json")
    assert done.returncode == 3
    [problem] = json.loads(done.stdout)["problems"]
    assert (problem["path"], problem["line"]) == ("reduce.yaml", 11)
    assert problem["message"].startswith(
        "reduce/reduce/wrong[Mean=999] and 1 more: the expected value and the reference contradict "
        "each other: 999 is not within [2.7"
    )
    assert "`disputes: reference`" in problem["hint"]


def test_a_dispute_is_a_problem_only_if_the_reference_agrees(tmp_path: Path) -> None:
    disputing = STATED.replace("    name: wrong\n", "    name: wrong\n    disputes: reference\n")
    write(tmp_path, disputing, "reduce.yaml")
    assert dmlconf_here(tmp_path, "validate", "reduce.yaml").returncode == 0
    write(tmp_path, disputing.replace("[999, 2.75, -1]", "[2.75]"), "reduce.yaml")
    done = dmlconf_here(tmp_path, "validate", "reduce.yaml")
    assert done.returncode == 3
    assert "disputes the reference, which nothing here contradicts" in done.stderr


def test_dispute_about_unchecked_recorded_outputs_is_no_problem(
    tmp_path: Path,
) -> None:
    """Recorded outputs of `model.yaml` are not checked."""
    folder = tmp_path / "reduce"
    folder.mkdir()
    path = write(folder, MEAN.replace("    desc:", f"    {DISPUTE}\n    desc:"), "model.yaml")
    case = build(next(load_suite([path]).plan()))
    right = Outputs({"OutputTensor": np.full((1, 1, 1, 1), 2.75, np.float32)})
    write_recording(folder / "x.dmlrec", case, right)
    done = dmlconf_here(tmp_path, "validate", "reduce", "--recordings")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_recorded_outputs_are_checked_only_with_the_option_recordings(
    tmp_path: Path, cache: Path
) -> None:
    folder = tmp_path / "reduce"
    folder.mkdir()
    case = build(next(load_suite([write(folder, MEAN, "mean.yaml")]).plan()))
    wrong = Outputs({"OutputTensor": np.full((1, 1, 1, 1), 999, np.float32)})
    write_recording(folder / "x.dmlrec", case, wrong)
    settings = {"DMLCONF_CACHE": str(cache)}
    for _ in range(2):  # The second time with a filled cache.
        assert dmlconf_here(tmp_path, "validate", "reduce", **settings).returncode == 0
        done = dmlconf_here(tmp_path, "validate", "reduce", "--recordings", **settings)
        assert done.returncode == 3
        assert "999 is not within" in done.stderr
        assert "record the case again" in done.stderr
    right = Outputs({"OutputTensor": np.full((1, 1, 1, 1), 2.75, np.float32)})
    write_recording(folder / "x.dmlrec", case, right)
    done = dmlconf_here(tmp_path, "validate", "reduce", "--recordings", **settings)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_problems_found_in_a_file_are_cached(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("an output is compared again")

    write(tmp_path, STATED, "reduce.yaml")
    entries = len(list(cache.iterdir()))
    first = dmlconf_here(tmp_path, "validate", "reduce.yaml", DMLCONF_CACHE=str(cache))
    assert len(list(cache.iterdir())) == entries + 1
    monkeypatch.setattr(checked, "contradictions_of", fail)
    again = dmlconf_here(tmp_path, "validate", "reduce.yaml", DMLCONF_CACHE=str(cache))
    assert (again.returncode, again.stderr) == (3, first.stderr)
    assert len(list(cache.iterdir())) == entries + 1


@pytest.mark.slow
def test_file_of_another_name_uses_no_cached_problems(tmp_path: Path, cache: Path) -> None:
    settings = {"DMLCONF_CACHE": str(cache)}
    for name in ("before.yaml", "after.yaml"):
        write(tmp_path, STATED, name)
        done = dmlconf_here(tmp_path, "validate", name, **settings)
        assert f"reduce/{Path(name).stem}/wrong[Mean=999]" in done.stderr


@pytest.mark.slow
def test_case_too_large_for_memory_is_not_cached_as_valid(tmp_path: Path, cache: Path) -> None:
    disputing = LARGE.format(mean=1).replace("    desc:", f"    {DISPUTE}\n    desc:")
    for content, complaint in (
        (LARGE.format(mean=999), "999 is not within"),
        (disputing, "nothing here contradicts"),
    ):
        settings = {"DMLCONF_CACHE": str(cache)}
        write(tmp_path, content, "reduce.yaml")
        # A process reads the limit only once; this one has read it.
        little = dmlconf(tmp_path, "validate", "reduce.yaml", DMLCONF_MEMORY_MIB="1", **settings)
        assert little.returncode == 0, little.stderr
        done = dmlconf_here(tmp_path, "validate", "reduce.yaml", **settings)
        assert (done.returncode, complaint in done.stderr) == (3, True), done.stderr


@pytest.mark.slow
def test_valid_file_is_checked_only_after_changes(tmp_path: Path, cache: Path) -> None:
    right, wrong = MEAN, MATRIX
    store = Store(cache)
    settings = {"DMLCONF_CACHE": str(store.folder)}
    path = write(tmp_path, right, "reduce.yaml")
    for _ in range(2):
        assert dmlconf_here(tmp_path, "validate", "reduce.yaml", **settings).returncode == 0
    assert ValidFiles(store).has(path, path.read_bytes())
    write(tmp_path, wrong, "reduce.yaml")
    for _ in range(2):
        done = dmlconf_here(tmp_path, "validate", "reduce.yaml", **settings)
        assert (done.returncode, "reduce.yaml:" in done.stderr) == (3, True), done.stderr
    assert not ValidFiles(store).has(path, path.read_bytes())
    ValidFiles(store).add(path)  # It is wrong, but now counts as valid.
    assert dmlconf_here(tmp_path, "validate", "reduce.yaml", **settings).returncode == 0
    assert dmlconf_here(tmp_path, "--no-cache", "validate", "reduce.yaml").returncode == 3
