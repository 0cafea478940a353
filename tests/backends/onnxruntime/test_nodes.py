"""ONNX's own node tests pass as cases on ONNX Runtime, or `node_results.yaml` says why not.

`tests/backends/onnxruntime/node_cases/` makes cases of the nodes.

The tested code is in `schemas/translation/onnx.yaml`, and in all modules of `dmlconf/translation/`,
`dmlconf/backends/onnxruntime/`, `dmlconf/reference/` and `dmlconf/precision/`.
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
