"""What each circumstance costs over a plain run, in the lab: `python -m benchmarks.circumstances`.

Every fortieth case of the suite without networks, or of the paths that are named, is run and
judged plainly, and then under each circumstance, in one process. The seconds are the processor's.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path
from time import process_time
from typing import Final

from dmlconf.backends import registry
from dmlconf.backends.circumstances import Circumstance, Inapplicable
from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.loader import load_suite, valid_case
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.runner.circumstances import judge_circumstances
from dmlconf.runner.conclusion import Conclusion
from dmlconf.runner.pool import BATCH
from dmlconf.runner.session import reference
from dmlconf.runner.verdict import Status, Verdict

EVERY: Final = 40


def sample(paths: list[str]) -> list[Case]:
    """Return the cases to measure: those that run, and are no networks."""
    plan = list(load_suite([Path(path) for path in paths or ["cases"]]).plan())
    plan = [each for each in plan if "model" not in each.template.tags]
    cases = [valid_case(each) for each in (plan if paths else plan[::EVERY])]
    return [case for case in cases if not isinstance(case.expectation, ExpectedRejection)]


def unexcused(case: Case, outcome: Outcome, verdict: Verdict) -> Verdict:
    return verdict


def main() -> None:
    """Print a line for the plain run and for each circumstance."""
    name = registry.parse("directml")
    backend = registry.create(name)
    conclusion = Conclusion(reference("numpy", name))
    seconds: defaultdict[str, float] = defaultdict(float)
    cases: Counter[str] = Counter()
    everything = sample(sys.argv[1:])
    for first in range(0, len(everything), BATCH):
        batch = everything[first : first + BATCH]
        began = process_time()
        list(backend.run(batch))
        seconds["cold"] += process_time() - began
        began = process_time()
        outcomes = list(backend.run(batch))
        verdicts = [conclusion.judge(*pair) for pair in zip(batch, outcomes, strict=True)]
        seconds["plain"] += process_time() - began
        for case, outcome, verdict in zip(batch, outcomes, verdicts, strict=True):
            if not isinstance(outcome, Outputs) or verdict.status is not Status.PASSED:
                continue
            if max(outcome.dispatch_seconds, default=0) > 1:
                continue
            cases["plain"] += 1
            for circumstance in Circumstance:
                began = process_time()
                result = backend.exercise(case, circumstance)  # type: ignore[attr-defined]
                judge_circumstances(
                    case, verdict, {circumstance: result}, conclusion.judge, unexcused
                )
                seconds[circumstance] += process_time() - began
                cases[circumstance] += not isinstance(result, Inapplicable)
    backend.close()
    for what, spent in seconds.items():
        share = spent / (seconds["cold"] + seconds["plain"] / 2)
        print(f"{what}: {cases[what]:,} cases, {spent:.1f} s, {share:.2f} of a run", flush=True)


if __name__ == "__main__":
    main()
