"""Write the sections of docs/runtimes.md on the results of ONNX's and WebNN's own tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from dmlconf.reports.markdown_text import cell, code, table

__all__ = ["own_tests_sections"]

_BACKENDS: Final = Path(__file__).parents[1] / "backends"

_ONNX: Final = """
## ONNX's own node tests

The package onnx has tests of single nodes, each with inputs and outputs. Those of the operators
above become cases: the desc is made of the node, its outputs are those that ONNX expects, and the
model is made of the desc by the table. So a pass says that translation, reference and ONNX agree.
With onnx {onnx}, on the CPU provider of ONNX Runtime {onnxruntime}:
"""

_WEBNN: Final = """
## WebNN's own tests

The web-platform-tests have tests of WebNN's operators, each with inputs, outputs, and how far
others may be from these. Those of one operator become cases in the same way. What is transposed
there, such as an image with its channels last, is transposed before, and sizes that are rounded up
become padding, since DirectML has neither. Those of two operators become graphs, if the second
changes neither sizes nor order. What the table or the browser cannot express is compared
with the reference only. No package has the tests: a checkout is read, whose files Chromium
evaluates, and this project keeps only what came of them. Without a checkout, as in CI, nothing
repeats it ([how to](targets.md#the-targets-own-tests)). When one number of each test was changed by
a tenth and 0.1, or an integer by one bit, 1,628 of 1,648 failed; the others accept as much. With
commit `{wpt}` of web-platform-tests, on the CPU in Chromium {chromium}:
"""


def own_tests_sections() -> str:
    """Return the two sections, from files with the results of these tests."""
    onnx = _section("ONNX", _ONNX, _BACKENDS / "onnxruntime" / "node_results.yaml")
    webnn = _section("WebNN", _WEBNN, _BACKENDS / "webnn" / "wpt_results.yaml")
    return onnx + webnn


def _section(title: str, begin: str, results: Path) -> str:
    data = yaml.safe_load(results.read_text("utf-8"))
    rows = ((cell(description), str(count)) for description, count in _rows(title, data))
    passed = ", ".join(f"{code(name)} {count}" for name, count in data["passed"].items())
    lines = [begin.format(**data), *table(("What", "Tests"), rows), "", f"These pass: {passed}."]
    return "\n".join(lines) + "\n"


def _rows(title: str, data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    total = sum(data["passed"].values())
    yield f"pass: {len(data['passed'])} operators", total
    if "passed_graphs" in data:
        yield "pass: graphs of two operators", data["passed_graphs"]
    for reason, count in sorted(Counter(data["explained"].values()).items()):
        yield f"{_explained(title, reason)}: {reason}", count
    for reason, count in sorted(Counter(data["not_expressible"].values()).items()):
        yield f"not expressible: {reason}", count
    for reason, count in data["no_case"].items():
        yield f"no case: {reason}", count
    operators = data["operators_without_cases"]
    counts = ", ".join(f"{name} {count}" for name, count in operators.items())
    yield f"operators whose tests are not made into cases: {counts}", sum(operators.values())
    yield "fail", len(data["failed"])


def _explained(title: str, reason: str) -> str:
    """Return what tests do that disagree for a known reason."""
    if reason.startswith("finding"):
        return "fail, as known"
    if reason.startswith("a mistake"):
        return "are as DirectML documents"
    return f"are as {title} expects, and not as DirectML documents"
