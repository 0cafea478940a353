"""Judge many outputs of one case, with one computation of what is expected and permitted."""

from __future__ import annotations

from collections.abc import Mapping

from dmlconf.backends.protocol import Fault, Outcome, Outputs
from dmlconf.cases.model import Case
from dmlconf.judging.judge import Against, Recorded, judge
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.strength.injection import Site
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status

__all__ = ["CaseJudge"]


class CaseJudge:
    """Gives the status of one case for any outputs; `allowances` is what its rules permit."""

    def __init__(self, case: Case, against: Against) -> None:
        self._case = case
        self._against = against
        self._expected: list[Outcome | Recorded | None] = []
        self.allowances = CaseAllowances(case)

    def __call__(self, arrays: Mapping[str, Array], faults: tuple[Fault, ...] = ()) -> Status:
        """Return the status of the case with these outputs."""
        outputs = Outputs(arrays, faults=faults)
        allowances = self.allowances
        verdict = judge(self._case, outputs, self._expectation, allowances=allowances, brief=True)
        return verdict.status

    def fails(self, site: Site, output: Array) -> bool:
        """Return whether the case does not pass with this output in place of the site's."""
        return self({**site.outputs, site.name: output}) is not Status.PASSED

    def _expectation(self, case: Case) -> Outcome | Recorded | None:
        if not self._expected:
            self._expected.append(self._against(case))
        return self._expected[0]
