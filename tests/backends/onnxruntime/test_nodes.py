"""ONNX's own node tests agree with translation, reference and judging, or are explained."""

from __future__ import annotations

import pytest
import yaml

pytestmark = pytest.mark.runtimes


def test_onnxs_own_node_tests_pass_or_are_explained() -> None:
    from tests.backends.onnxruntime.node_results import FILE, results  # It imports onnx.

    found = results()
    assert found["failed"] == {}
    assert sum(found["passed"].values()) > 400  # Older packages have fewer tests.
    known = yaml.safe_load(FILE.read_text("utf-8"))
    if all(found[name] == known[name] for name in ("onnx", "onnxruntime")):
        assert found == known  # `python -m tests.backends.onnxruntime.node_results` writes it anew.
