"""Compare a new run with a base run: verdicts, facts in the headers of their logs, and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from dmlconf.comparison.timing import Timing, timing
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Status, Verdict

__all__ = ["Change", "Changed", "Comparison", "Difference", "compare"]

DRIFT: Final = 0.1
"""A case that passes in both runs has drifted if its margin grows by more than this, for example
from 0.3 to 0.45. The margin is the greatest share of its limit that an output uses."""


class Change(StrEnum):
    """How the verdict on a case changed between two runs, the most severe change first.

    If only one of two verdicts is `not run`, it counts as none. A failure of a case that the base
    lacks is new. The values are part of JSON reports and must not change.
    """

    NEW_FAILURE = "fails newly"
    FAILS_OTHERWISE = "fails in another way"
    STILL_FAILS = "still fails"
    FIXED = "mended"
    STATUS = "another status"
    DRIFTED = "drifted toward its limit"
    BITS = "other bits within the rule"
    NEW = "only in the new run"
    GONE = "only in the base"
    SAME = "the same"

    @property
    def label(self) -> str:
        """The change in the words of reports for people."""
        return _LABELS.get(self, str(self))

    def counted(self, cases: int) -> str:
        """The words after a number of cases: `new failure` for 1, `new failures` for 2."""
        return self.label if cases == 1 else _PLURALS.get(self, self.label)


_LABELS: Final = {Change.NEW_FAILURE: "new failure", Change.FIXED: "fixed"}
"""The words in reports for people, where they differ from the values."""

_PLURALS: Final = {
    Change.NEW_FAILURE: "new failures",
    Change.FAILS_OTHERWISE: "fail in another way",
    Change.STILL_FAILS: "still fail",
    Change.DRIFTED: "drifted toward their limit",
}


@dataclass(frozen=True, slots=True)
class Changed:
    """A case in two runs.

    Attributes:
        base: the verdict of the base run, if it has the case.
        new: the verdict of the new run, if it has the case.
    """

    case: str
    operator: str
    change: Change
    base: Verdict | None
    new: Verdict | None

    @property
    def detail(self) -> str:
        """What changed, such as `30% of the limit, now 80%` or `not run, now passed`."""
        base, new = self.base, self.new
        if base is None or new is None:
            verdict = base or new
            return str(verdict.status) if verdict is not None else ""
        if self.change is Change.DRIFTED:
            return f"{_margin(base):.0%} of the limit, now {_margin(new):.0%}"
        if self.change is Change.BITS:
            return f"in {', '.join(_changed_outputs(base, new))}"
        if self.change is Change.STILL_FAILS:
            return _reason(new)
        if self.change is Change.FIXED:
            return f"was {base.status}: {_reason(base)}"
        became = f"{base.status}, now {new.status}"
        return f"{became}: {new.reason.kind}" if new.reason else became


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that differs between two runs.

    Attributes:
        name: the name of the fact, such as `driver`.
        base: the value in the base run as text, or empty. Digests are cut to 12 characters.
        new: the value in the new run, likewise.
    """

    name: str
    base: str
    new: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        base: the run with which the new one is compared.
        differences: the facts that differ, such as the backend, the environment and the options.
        changes: an entry for each case of either run, the most severe change first.
        timing: the times on the device.
    """

    base: RunLog
    new: RunLog
    differences: tuple[Difference, ...]
    changes: tuple[Changed, ...]
    timing: Timing

    def of(self, change: Change) -> list[Changed]:
        """Return the cases with this change, in the order of the new run, then of the base."""
        return [entry for entry in self.changes if entry.change is change]

    @property
    def fails_newly(self) -> bool:
        """Whether a case fails in the new run that did not fail in the base."""
        return bool(self.changes) and self.changes[0].change is Change.NEW_FAILURE

    @property
    def new_failures(self) -> RunLog:
        """The new run without the failures of cases that fail in the base too."""
        newly = {entry.case for entry in self.of(Change.NEW_FAILURE)}
        verdicts = (v for v in self.new.verdicts if v.case in newly or not v.status.fails_run)
        return replace(self.new, verdicts=tuple(verdicts))

    @property
    def shared(self) -> int:
        """The number of cases on which both runs have a verdict, perhaps `not run`."""
        return sum(entry.base is not None and entry.new is not None for entry in self.changes)


def compare(base: RunLog, new: RunLog, drift: float = DRIFT) -> Comparison:
    """Compare two runs; a case drifts if its margin grows by more than `drift`."""
    before = {verdict.case: verdict for verdict in base.verdicts}
    after = {verdict.case: verdict for verdict in new.verdicts}
    order = list(dict.fromkeys((*after, *before)))
    changes = [_changed(case, before.get(case), after.get(case), drift) for case in order]
    ranks = {change: rank for rank, change in enumerate(Change)}
    changes.sort(key=lambda entry: ranks[entry.change])
    differences = tuple(_differences(base, new))
    return Comparison(base, new, differences, tuple(changes), timing(base, new))


def _changed(case: str, base: Verdict | None, new: Verdict | None, drift: float) -> Changed:
    verdict = new or base
    assert verdict is not None
    return Changed(case, verdict.operator, _change(base, new, drift), base, new)


def _change(base: Verdict | None, new: Verdict | None, drift: float) -> Change:
    if new is None or new.status is Status.NOT_RUN:
        if base is None:
            return Change.NEW
        unreached = new is not None and base.status is Status.NOT_RUN
        return Change.SAME if unreached else Change.GONE
    if base is None or base.status is Status.NOT_RUN:
        return Change.NEW_FAILURE if new.status.fails_run else Change.NEW
    if new.status.fails_run:
        if not base.status.fails_run:
            return Change.NEW_FAILURE
        return Change.STILL_FAILS if _kind(base) == _kind(new) else Change.FAILS_OTHERWISE
    if base.status.fails_run and new.status is Status.PASSED:
        return Change.FIXED
    if base.status is not new.status:
        return Change.STATUS
    if new.status is Status.PASSED and _margin(new) - _margin(base) > drift:
        return Change.DRIFTED
    return Change.BITS if _changed_outputs(base, new) else Change.SAME


def _kind(verdict: Verdict) -> tuple[Status, str]:
    return verdict.status, str(verdict.reason.kind) if verdict.reason else ""


def _reason(verdict: Verdict) -> str:
    return str(verdict.reason.kind) if verdict.reason else str(verdict.status)


def _margin(verdict: Verdict) -> float:
    margins = ((output.margin or 0.0) for output in verdict.figures.values())
    return max(margins, default=0.0)


def _changed_outputs(base: Verdict, new: Verdict) -> list[str]:
    return [
        name
        for name, digest in new.execution.output_digests.items()
        if base.execution.output_digests.get(name, digest) != digest
    ]


def _differences(base: RunLog, new: RunLog) -> list[Difference]:
    before, after = _facts(base), _facts(new)
    return [
        Difference(name, before.get(name, ""), after.get(name, ""))
        for name in dict.fromkeys((*before, *after))
        if before.get(name, "") != after.get(name, "")
    ]


def _facts(log: RunLog) -> dict[str, str]:
    header = log.header
    apart = ("backend", "details")
    environment = {key: value for key, value in header.environment.items() if key not in apart}
    facts = {"backend": header.backend, **_texts("", environment)}
    facts |= _texts("", header.environment.get("details", {}))
    facts["dmlconf"] = header.dmlconf
    facts["suite"] = header.suite_digest[:12]
    facts["catalogue"] = header.catalogue_digest[:12]
    facts["compared with"] = header.against
    return facts | _texts("option ", header.options)


def _texts(prefix: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return each value that is not None as text, by its name.

    Nested values are named by paths: `recorded.driver`.
    """
    texts: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            texts |= _texts(f"{prefix}{key}.", value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            texts[f"{prefix}{key}"] = ", ".join(map(str, value))
        elif value is not None:
            texts[f"{prefix}{key}"] = str(value)
    return texts
