"""Cases with the tag `model` are left out by default on `numpy`, where nothing would judge them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import dmlconf_here

CASES = """\
operator: ELEMENT_WISE_NEGATE
cases:
  - name: layer
    desc:
      InputTensor: {Sizes: [3], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
"""

LEFT_OUT = "1 case with the tag `model` left out"


def suite(folder: Path) -> None:
    (folder / "negate").mkdir()
    for name in ("model", "matrix"):
        (folder / "negate" / f"{name}.yaml").write_text(CASES)


@pytest.mark.parametrize("backend", ["numpy", "faulty:negated"])
def test_only_other_backends_take_them_by_default(tmp_path: Path, backend: str) -> None:
    suite(tmp_path)
    process = dmlconf_here(tmp_path, "run", "negate", "-b", backend)
    taken = backend != "numpy"
    assert (LEFT_OUT in process.stderr) is not taken
    assert ("select them with --tag model" in process.stderr) is not taken
    assert ("of 2 cases" in process.stdout) is taken


@pytest.mark.parametrize(
    "asked",
    [
        ("negate", "--tag", "model"),
        ("negate/model.yaml",),
        ("negate", "--case", "element_wise_negate/model/layer"),
        ("negate", "-k", "model and layer"),
    ],
)
def test_whoever_asks_for_them_gets_them(tmp_path: Path, asked: tuple[str, ...]) -> None:
    suite(tmp_path)
    process = dmlconf_here(tmp_path, "run", *asked)
    assert "1 unchecked of 1 case" in process.stdout, process.stdout + process.stderr
    assert LEFT_OUT not in process.stderr


def test_a_tag_can_be_left_out(tmp_path: Path) -> None:
    suite(tmp_path)
    process = dmlconf_here(tmp_path, "list", "negate", "--without-tag", "model")
    assert process.stdout.split() == ["element_wise_negate/matrix/layer"]


def test_recordings_leave_them_out(tmp_path: Path) -> None:
    suite(tmp_path)
    process = dmlconf_here(
        tmp_path, "record", "negate", "-b", "faulty:negated", "-o", "made.dmlrec"
    )
    assert LEFT_OUT in process.stderr
    assert (tmp_path / "made.dmlrec").exists()
