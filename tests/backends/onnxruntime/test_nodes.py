"""ONNX's own node tests pass as cases on ONNX Runtime, or `node_results.yaml` says why not.

The outputs that ONNX expects of hundreds of nodes check all that a case passes through, so that the
tested code is whole packages: `dmlconf/translation/` (with `schemas/translation/onnx.yaml`),
`dmlconf/backends/onnxruntime/`, `dmlconf/reference/` and `dmlconf/precision/`. What makes cases of
the nodes is in `tests/backends/onnxruntime/node_cases/`.
"""

from __future__ import annotations

import pytest
import yaml

pytestmark = pytest.mark.runtimes


def test_onnxs_own_node_tests_pass_or_are_explained() -> None:
    from tests.backends.onnxruntime.node_results import FILE, results  # Imports onnx.

    actual = results()
    assert actual["failed"] == {}
    assert sum(actual["passed"].values()) > 400  # Older packages have fewer tests.
    expected = yaml.safe_load(FILE.read_text("utf-8"))
    if all(actual[name] == expected[name] for name in ("onnx", "onnxruntime")):
        # `python -m tests.backends.onnxruntime.node_results` writes the file again.
        assert actual == expected
