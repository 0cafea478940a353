"""Inputs of ONNX models are read from untrusted .npz files, within limits.

The tested code is in `dmlconf/capture/model_runs/input_files.py` and
`dmlconf/documents/zip_members.py`.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy

from dmlconf.capture.model_runs import input_files
from dmlconf.capture.model_runs.input_files import inputs_from
from dmlconf.capture.model_runs.onnx_sessions import ModelError


def write_archive(path: Path, content: bytes, name: str = "x.npy") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return path


def npy_header(shape: tuple[int, ...], descr: str) -> bytes:
    stream = io.BytesIO()
    fields: dict[str, Any] = {"descr": descr, "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(stream, fields)
    return stream.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(3),
        np.arange(6, dtype=np.float16).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(2.5, np.float32),
        np.zeros((0, 4)),
        np.array([True, False]),
    ],
)
def test_arrays_are_read_as_numpy_saved_them(tmp_path: Path, array: Any) -> None:
    for number, save in enumerate((np.savez, np.savez_compressed)):
        path = tmp_path / f"{number}.npz"
        save(path, x=array, y=array)
        read = inputs_from(path)
        assert list(read) == ["x", "y"]
        for each in read.values():
            np.testing.assert_array_equal(each, array)
            assert (each.dtype, each.shape) == (array.dtype, array.shape)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"abcd", "x is not an array"),
        (npy_header((1,), ",") + bytes(4), "x is not an array"),
        (npy_header((1 << 40,), "<f4") + bytes(4), "which 4 bytes do not hold"),
        (npy_header((-1, 2), "<f4"), "which 0 bytes do not hold"),
        # The product of these sizes is 2, and two elements have 8 bytes.
        (npy_header((-1, -2), "<f4") + bytes(8), "which 8 bytes do not hold"),
        (npy_header((1,), "|O") + bytes(8), "x holds Python objects, which are not read"),
    ],
)
def test_a_member_that_is_no_plain_array_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = write_archive(tmp_path / "inputs.npz", content)
    with pytest.raises(
        ModelError, match=rf"inputs\.npz cannot be read as an \.npz file: .*{message}"
    ):
        inputs_from(path)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    path.write_bytes(b"PK")
    with pytest.raises(ModelError, match=r"cannot be read as an \.npz file"):
        inputs_from(path)


@pytest.mark.parametrize("arrays", [1, 2])
def test_file_that_unpacks_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrays: int
) -> None:
    path = tmp_path / "inputs.npz"
    each = np.zeros(4000 // arrays, np.uint8)
    np.savez_compressed(path, *[each] * arrays)
    monkeypatch.setattr(input_files, "LARGEST_MODEL_INPUTS", 3000)
    with pytest.raises(ModelError, match="than the limit of 3,000 bytes"):
        inputs_from(path)
