"""Convert ONNX's node tests of normalisations into cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.onnxruntime.node_cases.building import Conversion, case_of
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest
from tests.backends.stated_cases import NoCaseError, by_channel, with_rank

__all__ = ["CONVERSIONS"]


def _tensor_and_channels(test: NodeTest, *names: str) -> dict[str, Array]:
    """Return the first input, and further inputs with a value for each channel (1x3x1x1)."""
    tensor = test.input(0)
    others = {name: by_channel(test.input(n), tensor.ndim) for n, name in enumerate(names, 1)}
    return {"InputTensor": tensor, **others}


def _batch_normalization(test: NodeTest) -> Case:
    if test.attributes["training_mode"]:
        raise NoCaseError("training")
    names = ("ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor")
    return case_of(
        test,
        "BATCH_NORMALIZATION",
        _tensor_and_channels(test, *names),
        Spatial=True,
        Epsilon=test.attributes["epsilon"],
    )


def _mean_variance(test: NodeTest) -> Case:
    instance = test.operation == "InstanceNormalization"
    axes = tuple(range(2, test.input(0).ndim)) if instance else tuple(test.attributes["axes"])
    return case_of(
        test,
        "MEAN_VARIANCE_NORMALIZATION1",
        _tensor_and_channels(test, *(("ScaleTensor", "BiasTensor") if instance else ())),
        AxisCount=len(axes),
        Axes=axes,
        NormalizeVariance=True,
        # ONNX defines MeanVarianceNormalization with this constant.
        Epsilon=test.attributes["epsilon"] if instance else 1e-9,
    )


def _layer_normalization(test: NodeTest) -> Case:
    tensor, scale, bias = test.input(0), test.input(1), test.optional(2)
    axes = tuple(range(test.axis, tensor.ndim))
    return case_of(
        test,
        "MEAN_VARIANCE_NORMALIZATION2",
        {
            "InputTensor": tensor,
            "ScaleTensor": with_rank(scale, tensor.ndim),
            "BiasTensor": None if bias is None else with_rank(bias, tensor.ndim),
        },
        AxisCount=len(axes),
        Axes=axes,
        UseMean=True,
        UseVariance=True,
        Epsilon=test.attributes["epsilon"],
    )


def _local_response(test: NodeTest) -> Case:
    return case_of(
        test,
        "LOCAL_RESPONSE_NORMALIZATION",
        CrossChannel=True,
        LocalSize=test.attributes["size"],
        Alpha=test.attributes["alpha"],
        Beta=test.attributes["beta"],
        Bias=test.attributes["bias"],
    )


def _lp_normalization(test: NodeTest) -> Case:
    return case_of(test, "LP_NORMALIZATION", Axis=test.axis, Epsilon=0.0, P=test.attributes["p"])


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "BatchNormalization": _batch_normalization,
    "InstanceNormalization": _mean_variance,
    "LRN": _local_response,
    "LayerNormalization": _layer_normalization,
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance,
}
