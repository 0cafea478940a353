"""Run ONNX models on ONNX Runtime's CPU provider, and compare results and times with it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import onnxruntime

from dmlconf.tensors.datatypes import Array

__all__ = ["THREADS", "beside", "same", "session_of", "timed"]

THREADS: Final = int(os.environ.get("OPENBLAS_NUM_THREADS", "0"))
"""Threads of ONNX Runtime; 0 for as many as there are cores."""


def session_of(model: Any) -> onnxruntime.InferenceSession:
    """Return a session that runs an ONNX model on the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 4
    # Threads that spin while waiting would take the processor from whatever runs next.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def same(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    """Return whether two lists of results differ by no more than rounding; shapes may differ."""
    return all(
        a.size == b.size and _close(a.astype(np.float64).ravel(), b.astype(np.float64).ravel())
        for a, b in zip(ours, theirs, strict=True)
    )


def _close(ours: Array, theirs: Array) -> bool:
    size = float(np.abs(ours[np.isfinite(ours)]).max(initial=0))
    return np.allclose(ours, theirs, rtol=2e-3, atol=size * 1e-3 + 1e-5)


def timed(function: Callable[[], object]) -> float:
    """Return the processor seconds that a call takes, in all threads."""
    began = time.process_time()
    function()
    return time.process_time() - began


def beside(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int
) -> tuple[float, float]:
    """Return the seconds of ours, and ours as a multiple of theirs; medians of pairs."""
    pairs = [(timed(ours), timed(theirs)) for _ in range(rounds)]
    seconds = statistics.median(one for one, _ in pairs)
    return seconds, statistics.median(one / max(other, 1e-6) for one, other in pairs)
