"""Inputs of ONNX models: generated, or from files of strangers."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dmlconf.capture.onnx_model import generated, inputs_from, parsed_dimension
from dmlconf.capture.onnx_sessions import ModelError


def test_inputs_are_generated_with_the_model_s_types_and_sizes() -> None:
    image = generated("x", "tensor(float)", ["batch", 3, None, "width"], {"batch": 2, "width": 5})
    assert (image.dtype.name, image.shape) == ("float32", (2, 3, 1, 5))
    assert image.min() >= -1
    assert image.max() <= 1
    assert image.std() > 0.1
    tokens = generated("ids", "tensor(int64)", [64], {})
    assert (tokens.dtype.name, int(tokens.min()), int(tokens.max())) == ("int64", 0, 9)
    assert np.array_equal(image, generated("x", "tensor(float)", [2, 3, 1, 5], {}))


@pytest.mark.parametrize(
    ("kind", "shape", "message"),
    [
        ("tensor(string)", [1], "is a tensor"),
        ("tensor(float)", [1 << 20, 1 << 20], "too large"),
    ],
)
def test_inputs_that_cannot_be_generated_are_named(
    kind: str, shape: list[int | str | None], message: str
) -> None:
    with pytest.raises(ModelError, match=f"the input x .*{message}"):
        generated("x", kind, shape, {})


def test_a_dimension_has_a_name_and_a_size() -> None:
    assert parsed_dimension("batch=4") == ("batch", 4)
    for wrong in ("batch", "batch=0", "=3", "batch=-1"):
        with pytest.raises(ModelError, match="is not a dimension such as batch=1"):
            parsed_dimension(wrong)


def test_inputs_come_from_a_file_without_pickles(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    np.savez(path, x=np.arange(3))
    assert inputs_from(path)["x"].tolist() == [0, 1, 2]
    np.savez(path, x=np.array([{}], dtype=object))
    with pytest.raises(ModelError, match="cannot be read"):
        inputs_from(path)
    path.write_bytes(b"PK")
    with pytest.raises(ModelError, match="cannot be read"):
        inputs_from(path)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"")
    # The size in the central directory, which is what an unpacker promises.
    packed = bytearray(content.getvalue())
    place = packed.rindex(b"PK\x01\x02") + 24
    packed[place : place + 4] = (2**31).to_bytes(4, "little")
    path = tmp_path / "inputs.npz"
    path.write_bytes(bytes(packed))
    with pytest.raises(ModelError, match="holds 2,147,483,648 bytes"):
        inputs_from(path)
