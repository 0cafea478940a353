"""Run a case in every variant of a backend, and draw a verdict that names the variants that fail.

Each variant has its own processes, so that a crash or a lost device of one leaves the others
running. No two variants run cases at once.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Final

import numpy as np

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.engine.session import OpenBackend, judged
from dmlconf.judging.conclusion import NO_OPTIONS, JudgeOptions
from dmlconf.judging.judge import Against
from dmlconf.tensors.datatypes import Array, bits_of
from dmlconf.verdicts.verdict import Status, VariantResult, Verdict, failing_variants
from dmlconf.workers.memory import parts_that_fit

__all__ = ["combined", "judged_variants"]

PART_CASES: Final = 64
PART_BYTES: Final = 1 << 26
"""The most bytes of the outputs of a part of the plan; a single case may have more."""


def judged_variants(
    plan: Iterable[PlannedCase],
    backend: OpenBackend,
    against: Against,
    options: JudgeOptions = NO_OPTIONS,
) -> Generator[Verdict, None, None]:
    """Run the plan in every variant, and yield one verdict on each case.

    Args:
        options: the options for each variant; circumstances are left out.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a process could not be started, or a recording cannot be read.
    """
    options = replace(options, circumstances=())
    for part in _parts(plan):
        verdicts: dict[str, dict[str, Verdict]] = {planned.identifier: {} for planned in part}
        differing: dict[str, dict[str, dict[str, int]]] = {name: {} for name in verdicts}
        first: dict[str, Outputs] = {}
        for label, variant in backend.variants.items():
            outcomes: dict[str, Outcome] = {}
            observed = replace(variant, execute=_Observed(variant, verdicts.keys(), outcomes))
            with closing(judged(part, observed, against, options)) as reached:
                for verdict in reached:
                    verdicts[verdict.case][label] = verdict
            for case, outcome in outcomes.items():
                if isinstance(outcome, Outputs):
                    base = first.setdefault(case, outcome)
                    differing[case][label] = _differing_bits(base.arrays, outcome.arrays)
        for case, by_label in verdicts.items():
            yield combined(by_label, differing[case])


def _parts(plan: Iterable[PlannedCase]) -> Iterator[list[PlannedCase]]:

    def output_bytes(planned: PlannedCase) -> int:
        outputs = valid_case(planned).outputs().values()
        return sum(math.prod(each.Sizes) * each.DataType.bits // 8 for each in outputs)

    return parts_that_fit(plan, output_bytes, PART_CASES, PART_BYTES)


class _Observed:
    """Runs cases on a variant, and keeps the first outcome of each case in `names`.

    Judging may run other cases as well, such as nodes of a graph, or a case twice.
    """

    def __init__(
        self, variant: OpenBackend, names: Iterable[str], outcomes: dict[str, Outcome]
    ) -> None:
        self._variant, self._names, self._outcomes = variant, frozenset(names), outcomes

    def __call__(self, cases: Iterator[Case]) -> Iterator[tuple[Case, Outcome]]:
        for case, outcome in self._variant.execute(cases):
            if case.identifier in self._names:
                self._outcomes.setdefault(case.identifier, outcome)
            yield case, outcome


def _differing_bits(base: Mapping[str, Array], other: Mapping[str, Array]) -> dict[str, int]:
    """Return how many elements have other bits, for each output that differs.

    Outputs whose sizes or data types differ are left out.
    """
    counts = {}
    for name in base.keys() & other.keys():
        first, second = base[name], other[name]
        if (first.shape, first.dtype) == (second.shape, second.dtype):
            counts[name] = int(np.count_nonzero(bits_of(first) != bits_of(second)))
    return {name: count for name, count in counts.items() if count}


def combined(
    verdicts: Mapping[str, Verdict], differing: Mapping[str, Mapping[str, int]]
) -> Verdict:
    """Return the most severe of the verdicts on a case's variants, with the sum of their seconds.

    If statuses or messages differ, the message names the variants with the most severe status.

    Args:
        differing: by variant and output, how many elements have other bits than those of the first
            variant that has outputs.
    """
    variants = {
        label: VariantResult(
            status=verdict.status,
            reason=verdict.reason.kind if verdict.reason else None,
            message=verdict.reason.message if verdict.reason else "",
            differing_bits=differing.get(label, {}),
            seconds=verdict.seconds,
            dispatch_seconds=verdict.execution.dispatch_seconds,
        )
        for label, verdict in verdicts.items()
    }
    first = next(iter(verdicts.values()))
    gravest = max(verdicts.values(), key=lambda verdict: verdict.status.traits.gravity)
    reason = gravest.reason
    if reason is not None:
        reason = replace(reason, message=_message(variants, gravest.status))
    warnings = (each for verdict in verdicts.values() for each in verdict.execution.warnings)
    return gravest.judged(variants=variants, reason=reason).ran(
        seconds=math.fsum(verdict.seconds for verdict in verdicts.values()),
        dispatch_seconds=first.execution.dispatch_seconds,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _message(variants: Mapping[str, VariantResult], gravest: Status) -> str:
    concerned = {label: result for label, result in variants.items() if result.status is gravest}
    messages = {result.message for result in concerned.values()}
    alike = len(messages) == 1
    if alike and len(concerned) == len(variants):
        [message] = messages
        return f"in every variant: {message}" if gravest.fails_run else message
    if alike:
        failing = {label for label, result in variants.items() if result.status.fails_run}
        culprit = failing_variants(variants) if failing == concerned.keys() else ""
        reasons = f"only with {culprit or ' and '.join(concerned)}: {min(messages)}"
    else:
        reasons = "; ".join(
            f"with {label}: {result.message}" for label, result in concerned.items()
        )
    others = "; ".join(
        f"{label} {_STATES[result.status]}"
        for label, result in variants.items()
        if label not in concerned
    )
    return f"{reasons}; {others}" if others else reasons


_STATES: Final[Mapping[Status, str]] = {
    Status.PASSED: "passes",
    **{status: f"is {status}" for status in Status if status is not Status.PASSED},
}
