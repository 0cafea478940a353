"""Enlarging images by whole numbers: resampling with the same size of all elements."""

from __future__ import annotations

from collections.abc import Mapping

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.resampling.resample import resample, resample_interval
from dmlconf.tensors.datatypes import Array

__all__ = ["upsample_2d", "upsample_2d_interval"]


def upsample_2d(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    ScaleSize: Mapping[str, int],
    InterpolationMode: str,
) -> Array:
    """Return images whose height and width are multiplied, as RESAMPLE does.

    Source: the page of DML_UPSAMPLE_2D_OPERATOR_DESC; that elements are read where the centers of
    the output's lie was measured.
    """
    return resample(InputTensor, OutputTensor, InterpolationMode, _scales(InputTensor, ScaleSize))


def upsample_2d_interval(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    ScaleSize: Mapping[str, int],
    InterpolationMode: str,
) -> tuple[Array, Array]:
    """Return the least and the greatest right values, as for RESAMPLE."""
    scales = _scales(InputTensor, ScaleSize)
    return resample_interval(InputTensor, OutputTensor, InterpolationMode, scales)


def _scales(tensor: Array, size: Mapping[str, int]) -> list[float]:
    return [1.0] * (tensor.ndim - 2) + [float(size["Height"]), float(size["Width"])]
