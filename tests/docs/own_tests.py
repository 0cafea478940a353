"""The part of docs/runtimes.md that says what comes of ONNX's own node tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from dmlconf.reports.markdown_text import cell, code, table

__all__ = ["node_tests_section"]

_RESULTS: Final = Path(__file__).parents[1] / "backends" / "onnxruntime" / "node_results.yaml"

_BEGIN: Final = """
## ONNX's own node tests

The package onnx has tests of single nodes, each with inputs and outputs. Those of the operators
above become cases: the desc is made of the node, its outputs are those that ONNX expects, and the
model is made of the desc by the table. So a pass says that translation, reference and ONNX agree.
With onnx {onnx}, on the CPU provider of ONNX Runtime {onnxruntime}:
"""


def node_tests_section() -> str:
    """Return the part of the page."""
    data = yaml.safe_load(_RESULTS.read_text("utf-8"))
    rows = ((cell(what), str(count)) for what, count in _rows(data))
    passed = ", ".join(f"{code(name)} {count}" for name, count in data["passed"].items())
    lines = [_BEGIN.format(**data), *table(("What", "Tests"), rows), "", f"These pass: {passed}."]
    return "\n".join(lines) + "\n"


def _rows(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    total = sum(data["passed"].values())
    yield f"pass: {len(data['passed'])} operators", total
    for why, count in sorted(Counter(data["explained"].values()).items()):
        yield f"are as ONNX expects, and not as DirectML documents: {why}", count
    for why, count in sorted(Counter(data["not_expressible"].values()).items()):
        yield f"not expressible: {why}", count
    for why, count in data["no_case"].items():
        yield f"no case: {why}", count
    operators = data["operators_without_cases"]
    counts = ", ".join(f"{name} {count}" for name, count in operators.items())
    yield f"operators whose tests are not made into cases: {counts}", sum(operators.values())
    yield "fail", len(data["failed"])
