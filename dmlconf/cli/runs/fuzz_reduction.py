"""Reduce failing random cases that `fuzz` has chosen, and write each as a case file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import Case, ExpectedRejection, PlannedCase
from dmlconf.cases.writing.export import export_case, exported_name
from dmlconf.cli.output.console import say
from dmlconf.diagnosis.reduction.reduce import reduce_case, with_own_data
from dmlconf.engine.session import OpenBackend, conclusion_for
from dmlconf.judging.conclusion import JudgeOptions, verdict_of
from dmlconf.judging.judge import Against
from dmlconf.verdicts.verdict import Verdict

__all__ = ["Trial", "reduce_groups"]

_FOLDER: Final = "reduced"


@dataclass(frozen=True, slots=True)
class Trial:
    """Runs a single case, and judges it as `dmlconf run` does.

    Attributes:
        options: what may excuse failures, and what runs besides the plain run.
    """

    backend: OpenBackend
    against: Against
    options: JudgeOptions

    def verdict(self, case: Case) -> Verdict:
        """Return the verdict on a case."""
        conclusion = conclusion_for(self.backend, self.against, self.options)
        return verdict_of(case, self.backend.execute, conclusion)

    def repeats(self, case: Case, verdict: Verdict) -> bool:
        """Return whether a case gets the given verdict's status and kind of reason again."""
        other = self.verdict(case)
        kinds = [each.reason.kind if each.reason else None for each in (other, verdict)]
        return other.status is verdict.status and kinds[0] is kinds[1]


def reduce_groups(
    folder: Path, failures: Sequence[tuple[PlannedCase, Verdict]], trial: Trial, seconds: float
) -> None:
    """Write the reduced form of each failing case, until time is up or a file cannot be written.

    Args:
        folder: gets a folder `reduced` with a case file for each reduced case.
        failures: a failing case of each group, with its verdict, the largest group first.
        seconds: how long all reductions together may take.
    """
    end = monotonic() + seconds
    for index, (planned, verdict) in enumerate(failures):
        share = (end - monotonic()) / (len(failures) - index)
        until = monotonic() + share
        if share <= 0:
            say(f"{len(failures) - index:,} groups are not reduced; --reduce gives them more time")
            return
        case = with_own_data(valid_case(planned))
        reduced = reduce_case(
            case,
            lambda smaller, verdict=verdict: trial.repeats(smaller, verdict),  # type: ignore[misc]
            lambda until=until: monotonic() > until,  # type: ignore[misc]
        )
        path = folder / _FOLDER / f"{exported_name(case.identifier)}.yaml"
        try:
            path.with_suffix("").mkdir(parents=True, exist_ok=True)
            own = reduced.case.expectation
            stated = own if isinstance(own, ExpectedRejection) else None
            inputs = {} if stated else reduced.case.inputs()
            export_case(path, reduced.case, stated, inputs)
        except OSError as error:
            say(f"Error: {path} could not be written: {error.strerror or error}")
            return
        rest = "" if reduced.complete else ", not completely"
        say(f"{case.identifier} was reduced in {reduced.trials:,} trials{rest}: {path}")
