"""The cost of each circumstance over a plain run, in the lab: `python -m benchmarks.circumstances`.

Every fortieth case of the suite without networks, or of the given paths, is run and judged plainly
and then under each circumstance, or the given ones, in one process. As in a run, results that are
bitwise equal to those of an earlier circumstance for the same inputs are judged once. Seconds are
processor time.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Final

from dmlconf.backends import registry
from dmlconf.backends.circumstances import Circumstance, Inapplicable
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.engine.session import reference
from dmlconf.judging.circumstances import judge_circumstances
from dmlconf.judging.conclusion import Conclusion
from dmlconf.tensors.sample import elements_digest
from dmlconf.verdicts.verdict import Status, Verdict
from dmlconf.workers.pool import BATCH

EVERY: Final = 40


def sample(paths: list[str]) -> list[Case]:
    """Return the cases to measure: those that run and are not networks."""
    plan = list(load_suite([Path(path) for path in paths or ["cases"]]).plan())
    plan = [each for each in plan if "model" not in each.template.tags]
    cases = [valid_case(each) for each in (plan if paths else plan[::EVERY])]
    return [case for case in cases if not isinstance(case.expectation, ExpectedRejection)]


def unexcused(case: Case, outcome: Outcome, verdict: Verdict) -> Verdict:
    return verdict


class Memory:
    """Judges outcomes of one case; bitwise equal results for the same inputs only once."""

    def __init__(self, judge: Callable[[Case, Outcome], Verdict]) -> None:
        self._judge = judge
        self._verdicts: dict[object, Verdict] = {}

    def __call__(self, case: Case, outcome: Outcome) -> Verdict:
        """Return the verdict on an outcome."""
        if not isinstance(outcome, Outputs) or outcome.faults:
            return self._judge(case, outcome)
        bits = [(name, elements_digest(array)) for name, array in outcome.arrays.items()]
        key = case.identifier, tuple(bits)
        if key not in self._verdicts:
            self._verdicts[key] = self._judge(case, outcome)
        return self._verdicts[key]


def main() -> None:
    """Print a line for the plain run and for each circumstance."""
    name = registry.parse("directml")
    backend = registry.create(name)
    conclusion = Conclusion(reference("numpy", name))
    seconds: defaultdict[str, float] = defaultdict(float)
    cases: Counter[str] = Counter()
    names = [each for each in Circumstance if each in sys.argv[1:]] or list(Circumstance)
    everything = sample([each for each in sys.argv[1:] if each not in set(Circumstance)])
    for first in range(0, len(everything), BATCH):
        batch = everything[first : first + BATCH]
        began = process_time()
        list(backend.run(batch))
        seconds["running"] += process_time() - began
        outcomes = list(backend.run(batch))
        began = process_time()
        verdicts = [conclusion.judge(*pair) for pair in zip(batch, outcomes, strict=True)]
        seconds["judging"] += process_time() - began
        for case, outcome, verdict in zip(batch, outcomes, verdicts, strict=True):
            if not isinstance(outcome, Outputs) or verdict.status is not Status.PASSED:
                continue
            if max(outcome.dispatch_seconds, default=0) > 1:
                continue
            cases["running"] += 1
            cases["judging"] += 1
            judge = Memory(conclusion.judge)
            for circumstance in names:
                began = process_time()
                result = backend.exercise(case, circumstance)  # type: ignore[attr-defined]
                judge_circumstances(case, verdict, {circumstance: result}, judge, unexcused)
                seconds[circumstance] += process_time() - began
                cases[circumstance] += not isinstance(result, Inapplicable)
    backend.close()
    for what, spent in seconds.items():
        share = spent / (seconds["running"] + seconds["judging"])
        print(f"{what}: {cases[what]:,} cases, {spent:.1f} s, {share:.2f} of a run", flush=True)


if __name__ == "__main__":
    main()
