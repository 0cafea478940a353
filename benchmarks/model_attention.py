"""Attention written out as ONNX nodes: products, an added mask, a softmax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.onnx_graph import Graph
from dmlconf.tensors.datatypes import Array

__all__ = ["attention"]


def attention(graph: Graph, desc: Mapping[str, Any], arrays: Mapping[str, Array]) -> str | None:
    """Add a MULTIHEAD_ATTENTION; return None for past keys, or masks other than lengths."""
    heads = desc["HeadCount"]
    if any(name.startswith("Past") for name in arrays) or "QueryTensor" not in arrays:
        return None
    parts = [arrays.get(f"{name}Tensor") for name in ("Query", "Key", "Value")]
    if any(part is None or part.ndim != 3 for part in parts):
        return None
    mask = _added_mask(desc, arrays)
    if mask is None:
        return None
    bias = arrays.get("BiasTensor")
    widths = [part.shape[-1] for part in parts if part is not None]
    ends = np.cumsum(widths)
    names = []
    for part, end, width in zip(parts, ends, widths, strict=True):
        assert part is not None
        name = graph.feed(part)
        if bias is not None:
            name = graph.add("Add", name, graph.feed(bias.reshape(-1)[end - width : end]))
        sizes = graph.constant(np.array([*part.shape[:2], heads, width // heads], np.int64))
        names.append(graph.add("Reshape", name, sizes))
    query, value = (graph.add("Transpose", names[i], perm=[0, 2, 1, 3]) for i in (0, 2))
    key = graph.add("Transpose", names[1], perm=[0, 2, 3, 1])
    scores = graph.add("MatMul", query, key)
    scores = graph.add("Mul", scores, graph.constant(np.float32(desc["Scale"])))
    if mask.any():
        scores = graph.add("Add", scores, graph.feed(mask))
    if "RelativePositionBiasTensor" in arrays:
        scores = graph.add("Add", scores, graph.feed(arrays["RelativePositionBiasTensor"]))
    shares = graph.add("Softmax", scores, axis=3)
    found = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[0, 2, 1, 3])
    batch, rows = arrays["QueryTensor"].shape[:2]
    return graph.add("Reshape", found, graph.constant(np.array([batch, rows, -1], np.int64)))


def _added_mask(desc: Mapping[str, Any], arrays: Mapping[str, Array]) -> Array | None:
    """Return what is added to the scores, FLOAT32 {batch, 1, 1, keys}; None for other masks."""
    batch, keys = arrays["KeyTensor"].shape[:2]
    if desc["MaskType"] == "NONE":
        return np.zeros((batch, 1, 1, keys), np.float32)
    if desc["MaskType"] != "KEY_SEQUENCE_LENGTH":
        return None
    hidden = np.arange(keys) >= arrays["MaskTensor"].reshape(-1, 1)
    added: Array = np.where(hidden, np.float32(desc["MaskFilterValue"]), np.float32(0))
    return added.reshape(batch, 1, 1, keys)
