"""Measure what reports and diagnoses say about the planted defects of `defects.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from dmlconf.backends import registry
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cli.common.cache import user_store
from dmlconf.diagnosis.bench import Bench
from dmlconf.diagnosis.diagnose import diagnose
from dmlconf.diagnosis.reduction.cost import element_count
from dmlconf.diagnosis.shared_properties import shared_properties
from dmlconf.engine.against import AUTO, expectations
from dmlconf.engine.session import judged, make_header
from dmlconf.resources import cases_directory
from dmlconf.run_log.log import RunLog
from tests.diagnosis.defects import Defect
from tests.diagnosis.test_planted import first_lines

__all__ = ["LARGEST", "Measured", "measure", "table"]

LARGEST: Final = 64
"""The most elements of inputs and outputs of a small case."""

_SECONDS: Final = 60.0
"""The time that a diagnosis has by default to reduce its case, as `dmlconf diagnose` has."""


@dataclass(frozen=True)
class Measured:
    """The diagnosis of a defect.

    Attributes:
        named: whether `lines` name the condition of the defect.
        condition: the condition in the report.
        culprit: the factor that `diagnose` blames.
        before: the elements of the case.
        elements: the elements of the reduced case.
        trials: the runs of the reduction.
        lines: the first lines of the report.
    """

    defect: Defect
    named: bool
    condition: str
    culprit: str | None
    before: int
    elements: int
    trials: int
    seconds: float
    lines: str

    @property
    def culprit_right(self) -> bool:
        return self.culprit == self.defect.culprit

    @property
    def small(self) -> bool:
        return self.elements <= LARGEST


def measure(defect: Defect, seconds: float = _SECONDS) -> Measured:
    """Run the defect's operators on its backend, and diagnose the largest group of failures.

    The diagnosis stops reducing its case this many seconds after it began.
    """
    began = perf_counter()
    folders = [cases_directory() / name.lower() for name in defect.operators]
    suite = load_suite(folders, store=user_store())
    plan = [planned for planned in suite.plan() if "model" not in planned.template.tags]
    bench = Bench(registry.parse(defect.backend), min(defect.timeout, 10), lambda case: None)
    try:
        backend = bench.open()
        expected = expectations(AUTO, backend, suite, plan, folders)
        bench.against = expected.against
        header = make_header(suite, [], len(plan), backend, expected.name, {"against": AUTO})
        log = RunLog(header, tuple(judged(plan, backend, expected.against)), None)
        lines = first_lines(log)
        shared = shared_properties(log)[0]
        case = next(valid_case(p) for p in plan if p.identifier == shared.simplest.case)
        diagnosis = diagnose(case, bench, seconds)
    finally:
        bench.close()
    reduced = diagnosis.reduced
    return Measured(
        defect,
        all(re.search(pattern, lines) for pattern in defect.named),
        shared.condition.text if shared.condition else "",
        diagnosis.culprit.factor if diagnosis.culprit else None,
        element_count(case),
        element_count(reduced.case) if reduced else element_count(case),
        reduced.trials if reduced else 0,
        perf_counter() - began,
        lines,
    )


def table(measured: Sequence[Measured]) -> Iterator[str]:
    yield "| Defect | Named by the report | Condition of the report | Culprit | Elements | Trials |"
    yield "|---|---|---|---|---|---|"
    for each in measured:
        culprit = each.culprit or "none"
        wrong = "" if each.culprit_right else f" (not {each.defect.culprit or 'none'})"
        condition = each.condition.replace("|", "\\|")
        yield (
            f"| {each.defect.name} | {'yes' if each.named else '**no**'} | `{condition}` "
            f"| {culprit}{wrong} | {each.before:,} → {each.elements:,} | {each.trials:,} |"
        )
