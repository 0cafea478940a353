"""Case files may take tensor data from .npy files; errors name the line of the case file.

The tested code is in `dmlconf/cases/building/files.py` and `dmlconf/documents/files.py`.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, ExpectedOutputs
from tests.documents.refusals import refused

TILE = """\
operator: TILE
cases:
  - desc:
      InputTensor: {Sizes: [2, 3], DataType: %s, values: {file: %s}}
      OutputTensor: {Sizes: [2, 3], DataType: %s}
      Repeats: [1, 1]
"""
"""It is completed with a data type, the name of a .npy file, and the data type again."""

ELEMENTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def case_file(folder: Path, name: str, data_type: str = "FLOAT32") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "cases.yaml"
    path.write_text(TILE % (data_type, name, data_type))
    return path


def built(path: Path) -> Case:
    return build(next(load_suite([path]).plan()))


@pytest.mark.parametrize(
    "stored",
    [ELEMENTS, ELEMENTS.ravel(), np.asfortranarray(ELEMENTS), ELEMENTS.astype(">f4")],
    ids=["nested", "flat", "column-major", "big-endian"],
)
def test_a_file_gives_elements_in_the_order_of_sizes(tmp_path: Path, stored: Any) -> None:
    path = case_file(tmp_path, "a.npy")
    np.save(tmp_path / "a.npy", stored)
    case = built(path)
    assert case.inputs()["InputTensor"].tolist() == ELEMENTS.tolist()
    assert case.inputs()["InputTensor"].dtype == np.float32
    digest = hashlib.sha256((tmp_path / "a.npy").read_bytes()).hexdigest()
    assert case.files == {"a.npy": digest}


def test_an_expected_output_may_be_in_a_subfolder(tmp_path: Path) -> None:
    path = case_file(tmp_path, "a.npy")
    path.write_text(path.read_text() + "    expect: {OutputTensor: {file: data/b.npy}}\n")
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "a.npy", ELEMENTS)
    np.save(tmp_path / "data/b.npy", ELEMENTS + 1)
    case = built(path)
    assert isinstance(case.expectation, ExpectedOutputs)
    assert case.expectation.outputs["OutputTensor"].tolist() == (ELEMENTS + 1).tolist()
    assert set(case.files) == {"a.npy", "data/b.npy"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../outside.npy", "../outside.npy is outside the case file's folder"),
        ("/outside.npy", "/outside.npy is an absolute path"),
        ("link.npy", "link.npy is outside the case file's folder"),
        ("missing.npy", "missing.npy cannot be read: No such file or directory"),
        ("folder.npy", "folder.npy is a folder, not a regular file"),
        ("a.npz", "'a.npz' is not the name of a .npy file"),
        ("a", "'a' is not the name of a .npy file"),
    ],
)
def test_an_invalid_path_of_an_npy_file_is_refused(tmp_path: Path, name: str, message: str) -> None:
    path = case_file(tmp_path / "cases", name)
    np.save(tmp_path / "outside.npy", ELEMENTS)
    (tmp_path / "cases/link.npy").symlink_to(tmp_path / "outside.npy")
    (tmp_path / "cases/folder.npy").mkdir()
    assert message in refused(path)
    assert "cases.yaml:4:" in refused(path)


def test_an_absolute_path_into_the_folder_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ELEMENTS)
    path = case_file(tmp_path, (tmp_path / "a.npy").as_posix())
    assert "a.npy is an absolute path" in refused(path)


def test_each_case_of_a_matrix_has_its_files_digests(tmp_path: Path) -> None:
    tensor = "{Sizes: [2], DataType: FLOAT32, values: {file: %s}}"
    path = tmp_path / "cases.yaml"
    path.write_text(
        "operator: ELEMENT_WISE_ADD\ncases:\n  - matrix: {Name: [a.npy, b.npy]}\n    desc:\n"
        f"      ATensor: {tensor % '=Name'}\n      BTensor: {tensor % 'a.npy'}\n"
        "      OutputTensor: {Sizes: [2], DataType: FLOAT32}\n"
    )
    digests = {}
    for number, name in enumerate(("a.npy", "b.npy")):
        np.save(tmp_path / name, np.full(2, number, np.float32))
        digests[name] = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    files = [dict(build(planned).files) for planned in load_suite([path]).plan()]
    assert files == [{"a.npy": digests["a.npy"]}, digests]


def saved(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def zipped() -> bytes:
    """Return the content of an .npz file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", saved(ELEMENTS))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (saved(np.array([{}] * 6), allow_pickle=True), "holds Python objects"),
        (saved(ELEMENTS.astype(np.float64)), "holds FLOAT64 where DataType is FLOAT32"),
        (saved(ELEMENTS.T.copy()), "has the shape (3, 2) where Sizes are (2, 3)"),
        # The header has 128 bytes, the elements 6 * 4.
        (saved(ELEMENTS)[:-1], "is 151 bytes long where its header promises 152"),
        (saved(ELEMENTS) + b"x", "is 153 bytes long where its header promises 152"),
        (saved(ELEMENTS)[:20], "is not a NumPy array"),
        (b"", "is not a NumPy array"),
        (zipped(), "is not a NumPy array"),
        (saved(ELEMENTS).replace(b"'<f4'", b"()   "), "is not a NumPy array"),
    ],
    ids=["pickle", "type", "shape", "short", "long", "header", "empty", "zip", "no type"],
)
def test_an_npy_file_with_unsuitable_content_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = case_file(tmp_path, "a.npy")
    (tmp_path / "a.npy").write_bytes(content)
    assert message in refused(path)


def test_numbers_that_do_not_fit_4_bits_are_refused(tmp_path: Path) -> None:
    path = case_file(tmp_path, "a.npy", "UINT4")
    np.save(tmp_path / "a.npy", np.array([[0, 1, 15], [16, 2, 3]], np.uint8))
    assert "has numbers from 0 to 16, which UINT4 does not hold" in refused(path)
