"""Judge cases that are not in the suite by outputs, for tests of known faults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dmlconf.backends.protocol import Environment, Fault, Outputs
from dmlconf.backends.registry import parse
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.engine.session import reference
from dmlconf.excuses.known_fault_file import known_faults
from dmlconf.judging.judge import judge
from dmlconf.verdicts.verdict import Status

__all__ = ["case_of", "outputs_of", "status_and_fault"]


def case_of(folder: Path, operator: str, desc: str) -> Case:
    path = folder / "of-a-user.yaml"
    path.write_text(f"operator: {operator}\ncases:\n  - name: mine\n    desc: {desc}\n", "utf-8")
    return build(next(load_suite([path]).plan()))


def outputs_of(case: Case, values: Mapping[str, list[Any]]) -> dict[str, np.ndarray[Any, Any]]:
    return {
        name: np.array(values[name], tensor.DataType.dtype).reshape(tensor.Sizes)
        for name, tensor in case.outputs().items()
    }


def status_and_fault(
    case: Case,
    arrays: Mapping[str, np.ndarray[Any, Any]],
    version: str,
    other_faults: tuple[Fault, ...] = (),
) -> tuple[str, str]:
    """Return the status, and the name of the fault that waives the verdict, or ""."""
    faults = known_faults(Environment("directml", version, "an adapter", "1.0"))
    outcome = Outputs(arrays, faults=other_faults)
    verdict = judge(case, outcome, reference("numpy", parse("directml")))
    verdict = faults.waive(case, outcome, verdict)
    reason = verdict.reason.message if verdict.reason else ""
    return verdict.status, reason.partition(",")[0] if verdict.status is Status.WAIVED else ""
