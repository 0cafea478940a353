"""Runs on `numpy` and `dmlconf record` leave out cases with the tag `model` by default.

The tested code is in `dmlconf/cli/options/models.py`, `dmlconf/cli/options/selection.py` and
`dmlconf/reports/runs/left_out.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.backends.recording.file import read_recording
from tests.cli.process import dmlconf_here

CASES = """\
operator: ELEMENT_WISE_NEGATE
cases:
  - name: layer
    desc:
      InputTensor: {Sizes: [3], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
"""
"""A case, whose tag is the name of its file."""

LEFT_OUT = "1 case with the tag `model` left out"


def write_suite(folder: Path) -> None:
    (folder / "negate").mkdir()
    for name in ("model", "matrix"):
        (folder / "negate" / f"{name}.yaml").write_text(CASES)


@pytest.mark.parametrize("backend", ["numpy", "faulty:negated"])
def test_only_runs_on_numpy_leave_out_models(tmp_path: Path, backend: str) -> None:
    write_suite(tmp_path)
    reports = ["--report", "markdown:run.md", "--report", "html:run.html"]
    process = dmlconf_here(tmp_path, "run", "negate", "-b", backend, *reports)
    included = backend != "numpy"
    assert ("of 2 cases" in process.stdout) is included
    assert LEFT_OUT not in process.stdout + process.stderr
    verbose = dmlconf_here(tmp_path, "run", "negate", "-b", backend, "-v").stdout
    pages = [(tmp_path / name).read_text("utf-8") for name in ("run.md", "run.html")]
    for text in (verbose, *pages):
        # Line breaks and escapes are removed.
        plain = " ".join(text.replace("\\", "").replace("&#96;", "`").split())
        assert (LEFT_OUT in plain) is not included
        assert ("select them with --tag model" in plain) is not included


@pytest.mark.parametrize("backends", [("faulty:negated", "numpy"), ("numpy", "faulty:negated")])
def test_failure_counts_if_another_backend_runs_no_case(
    backends: tuple[str, str], tmp_path: Path
) -> None:
    write_suite(tmp_path)
    (tmp_path / "negate" / "matrix.yaml").unlink()
    options = [word for backend in backends for word in ("-b", backend)]
    process = dmlconf_here(tmp_path, "run", "negate", *options)
    assert "no case was selected" in process.stderr
    assert process.returncode == 1


def test_run_without_remaining_cases_says_so(tmp_path: Path) -> None:
    write_suite(tmp_path)
    (tmp_path / "negate" / "matrix.yaml").unlink()
    process = dmlconf_here(tmp_path, "run", "negate")
    assert process.returncode == 5
    assert LEFT_OUT in process.stderr


@pytest.mark.parametrize(
    "asked",
    [
        ("negate", "--tag", "model"),
        ("negate/model.yaml",),
        ("negate", "--case", "element_wise_negate/model/layer"),
        ("negate", "-k", "model and layer"),
        ("negate", "-k", "Model and layer"),
    ],
)
def test_cases_of_models_run_if_asked_for(tmp_path: Path, asked: tuple[str, ...]) -> None:
    write_suite(tmp_path)
    process = dmlconf_here(tmp_path, "run", *asked)
    assert "1 unchecked of 1 case" in process.stdout, process.stdout + process.stderr
    assert LEFT_OUT not in process.stderr


def test_without_tag_leaves_out_cases_with_the_tag(tmp_path: Path) -> None:
    write_suite(tmp_path)
    process = dmlconf_here(tmp_path, "list", "negate", "--without-tag", "model")
    assert process.stdout.split() == ["element_wise_negate/matrix/layer"]


def test_record_leaves_cases_of_models_out_by_default(tmp_path: Path) -> None:
    write_suite(tmp_path)
    process = dmlconf_here(
        tmp_path, "record", "negate", "-b", "faulty:negated", "-o", "made.dmlrec"
    )
    assert LEFT_OUT in process.stderr
    entries = read_recording(tmp_path / "made.dmlrec").entries
    assert list(entries) == ["element_wise_negate/matrix/layer"]
