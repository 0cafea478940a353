"""Inputs of ONNX models come from a file or are generated; users set sizes of open dimensions.

The tested code is in `dmlconf/capture/model_runs/onnx_model.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dmlconf.capture.model_runs.onnx_model import generated, model_inputs, parsed_dimension
from dmlconf.capture.model_runs.onnx_sessions import ModelError, OnnxSession, SessionSettings


def test_generated_inputs_have_types_and_sizes_of_the_model() -> None:
    image = generated("x", "tensor(float)", ["batch", 3, None, "width"], {"batch": 2, "width": 5})
    assert (image.dtype.name, image.shape) == ("float32", (2, 3, 1, 5))
    tokens = generated("ids", "tensor(int64)", [64], {})
    assert (tokens.dtype.name, tokens.shape) == ("int64", (64,))


def test_generated_numbers_have_a_range_and_are_reproducible() -> None:
    image = generated("x", "tensor(float)", [2, 3, 1, 5], {})
    assert image.min() >= -1
    assert image.max() <= 1
    assert len(np.unique(image)) == image.size
    assert np.array_equal(image, generated("x", "tensor(float)", [2, 3, 1, 5], {}))
    tokens = generated("ids", "tensor(int64)", [64], {})
    assert (int(tokens.min()), int(tokens.max())) == (0, 9)


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


def test_dimension_option_is_a_name_and_a_positive_size() -> None:
    assert parsed_dimension("batch=4") == ("batch", 4)
    assert parsed_dimension(f"batch={2**63 - 1}") == ("batch", 2**63 - 1)
    for wrong in ("batch", "batch=0", "=3", "batch=-1", f"batch={2**63}", "batch=" + "9" * 5000):
        with pytest.raises(ModelError, match="is not a dimension such as batch=1"):
            parsed_dimension(wrong)


@dataclass(frozen=True)
class Input:
    name: str
    type: str
    shape: list[int | str]


class Runtime:
    """A session of a model with the inputs image and mask, whose dimension `batch` is open."""

    def get_inputs(self) -> list[Input]:
        return [
            Input("image", "tensor(float)", ["batch", 3]),
            Input("mask", "tensor(bool)", ["batch"]),
        ]


def test_only_missing_inputs_are_generated() -> None:
    image = np.ones((2, 3), np.float32)
    settings = SessionSettings(Path("model.onnx"), {"batch": 2})
    inputs = model_inputs(OnnxSession(Runtime()), settings, {"image": image})
    assert inputs["image"] is image
    assert inputs["mask"].dtype == np.bool_
    assert inputs["mask"].shape == (2,)


@pytest.mark.parametrize(
    ("dimensions", "names", "message"),
    [
        ({"bach": 2}, [], "no open dimension 'bach'; it has batch"),
        ({}, ["Image"], "no input 'Image'; it has image, mask"),
    ],
)
def test_unknown_dimensions_and_inputs_are_refused(
    dimensions: dict[str, int], names: list[str], message: str
) -> None:
    settings = SessionSettings(Path("model.onnx"), dimensions)
    data = dict.fromkeys(names, np.ones(1))
    with pytest.raises(ModelError, match=message):
        model_inputs(OnnxSession(Runtime()), settings, data)
