"""Judge given outputs of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

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


def status_of(case: Case, outputs: Mapping[str, ArrayLike]) -> Status:
    expected = evaluate(case)
    actual: dict[str, Array] = {
        name: np.array(values, expected[name].dtype).reshape(expected[name].shape)
        for name, values in outputs.items()
    }

    def reference(each: Case) -> Outcome:
        return Outputs(expected)

    return judge(case, Outputs({**expected, **actual}), reference).status


def accepts(case: Case, output: str, values: ArrayLike) -> bool:
    """Return whether a case with these values of an output passes or is unchecked."""
    return status_of(case, {output: values}) in (Status.PASSED, Status.UNCHECKED)


def passes(case: Case, output: str, values: ArrayLike) -> bool:
    return status_of(case, {output: values}) is Status.PASSED


def graph(tmp_path: Path, inputs: str, nodes: str, output: str = "node") -> Case:
    """Return a graph with these inputs and nodes, in YAML; `output` is its output `y`."""
    return graph_case(tmp_path, f"inputs:{inputs}\nnodes:{nodes}\noutputs: {{y: {output}}}\n")


def single(tmp_path: Path, operator: str, desc: str) -> Case:
    text = f"operator: {operator}\ncases:\n  - name: one\n    desc: {{{desc}}}\n"
    (planned,) = load_suite([write(tmp_path, text, "one.yaml")]).plan()
    return build(planned)
