"""Judge given outputs of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.judging.judge import judge
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status
from tests.engine.cases import write
from tests.graphs.suites import graph_case

Values = Sequence[float]


_LAST: Final[list[tuple[Case, Mapping[str, Array], CaseAllowances]]] = []
"""The case that was judged last, with its right outputs and its allowances."""


def right_and_allowances(case: Case) -> tuple[Mapping[str, Array], CaseAllowances]:
    """Return the right outputs and the allowances of a case, which all its judgements share."""
    if not _LAST or _LAST[0][0] is not case:
        _LAST[:] = [(case, evaluate(case), CaseAllowances(case))]
    _, expected, allowances = _LAST[0]
    return expected, allowances


def status_of(case: Case, outputs: Mapping[str, ArrayLike]) -> Status:
    expected, allowances = right_and_allowances(case)
    actual: dict[str, Array] = {
        name: np.array(values, expected[name].dtype).reshape(expected[name].shape)
        for name, values in outputs.items()
    }

    def reference(each: Case) -> Outcome:
        return Outputs(dict(expected))

    return judge(case, Outputs({**expected, **actual}), reference, allowances=allowances).status


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
