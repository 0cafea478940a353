"""Judge given outputs of a case, for tests of what is permitted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.judging.judge import judge
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status
from tests.engine.cases import write
from tests.graphs.suites import graph_case

Values = Sequence[float]


def accepts(case: Case, output: str, values: Values) -> bool:
    """Return whether a case passes if an output has these values, and all others are right."""
    expected = evaluate(case)
    like = expected[output]
    actual: dict[str, Array] = {output: np.array(values, like.dtype).reshape(like.shape)}

    def reference(each: Case) -> Outcome:
        return Outputs(expected)

    status = judge(case, Outputs({**expected, **actual}), reference).status
    return status in (Status.PASSED, Status.UNCHECKED)


def graph(tmp_path: Path, inputs: str, nodes: str, output: str = "node") -> Case:
    """Return a graph of these inputs and nodes; its output `y` is that of the node `output`."""
    return graph_case(tmp_path, f"inputs:{inputs}\nnodes:{nodes}\noutputs: {{y: {output}}}\n")


def single(tmp_path: Path, operator: str, desc: str) -> Case:
    """Return a case of one operator; `desc` is YAML without the outer braces."""
    text = f"operator: {operator}\ncases:\n  - name: one\n    desc: {{{desc}}}\n"
    (planned,) = load_suite([write(tmp_path, text, "one.yaml")]).plan()
    return build(planned)
