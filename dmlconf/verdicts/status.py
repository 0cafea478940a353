"""The statuses of verdicts, and what follows from each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Status", "StatusTraits"]


@dataclass(frozen=True, slots=True)
class StatusTraits:
    """What follows from a status.

    Attributes:
        meaning: when a case has the status, in the words of the documentation.
        fails_run: whether one verdict with the status makes the run fail.
        judged: whether the backend was found right or wrong.
        gravity: of the statuses of a case's variants, the one of the highest gravity counts.
        junit: the element of JUnit XML; None for a test that passed.
        style: the style of Rich in the terminal.
        colors: the colors on light and on dark pages.
        checked: whether the case was found right, or its failure is waived.
        excusable: whether a known fault or a waiver may excuse the failure.
        fails_on_demand: whether `--fail-on` may name the status.
        junit_of_run: the element of JUnit XML for a run that ended before it reached some cases;
            None unless the status is `not run`.
        always_shown: whether tables have a column for the status even if no case has it.
    """

    meaning: str
    fails_run: bool
    judged: bool
    gravity: int
    junit: str | None
    style: str
    colors: tuple[str, str]
    checked: bool = False
    excusable: bool = False
    fails_on_demand: bool = False
    junit_of_run: str | None = None
    always_shown: bool = False


class Status(StrEnum):
    """The judgement on one case."""

    traits: StatusTraits

    def __new__(cls, name: str, traits: StatusTraits | None = None) -> Status:
        """Make a member; `Status("passed")` only looks one up."""
        assert traits is not None
        member = str.__new__(cls, name)
        member._value_ = name
        member.traits = traits
        return member

    PASSED = (
        "passed",
        StatusTraits(
            "every output with an expectation that the backend did not produce itself is within "
            "its rule; the two forms of a graph that a relation compares agree; or the case was "
            "rejected as expected",
            fails_run=False,
            judged=True,
            gravity=0,
            junit=None,
            style="green",
            colors=("#1a7f37", "#3fb950"),
            checked=True,
            always_shown=True,
        ),
    )
    FAILED = (
        "failed",
        StatusTraits(
            "a wrong or missing output; a fault, such as a changed input; an invalid case that "
            "was accepted, or rejected otherwise than expected; a valid one that was rejected; an "
            "expectation that contradicts the reference; a relation that does not hold; or a "
            "failure that does not repeat",
            fails_run=True,
            judged=True,
            gravity=6,
            junit="failure",
            style="bold red",
            colors=("#b3261e", "#ff7b72"),
            excusable=True,
            always_shown=True,
        ),
    )
    BROKEN = (
        "broken",
        StatusTraits(
            "the backend crashed, hung, lost its device, ran out of memory or had another error; "
            "or dmlconf failed to judge the case",
            fails_run=True,
            judged=True,
            gravity=7,
            junit="error",
            style="bold magenta",
            colors=("#8e24aa", "#d2a8ff"),
            excusable=True,
            always_shown=True,
        ),
    )
    UNSUPPORTED = (
        "unsupported",
        StatusTraits(
            "the documentation lets the backend decline the case, by feature level or data type, "
            "or as no table of support lists its tensors; the case needs more memory than the "
            "device or the machine has; a limit of the layers below DirectML, from `--substrate`, "
            "makes it fail; or the backend [cannot express "
            "it](#cases-that-a-backend-cannot-express)",
            fails_run=False,
            judged=False,
            gravity=1,
            junit="skipped",
            style="yellow",
            colors=("#6e7781", "#9ba5b0"),
            fails_on_demand=True,
        ),
    )
    UNCHECKED = (
        "unchecked",
        StatusTraits(
            "the case ran or was rejected, but it has no independent expectation; or its rules "
            "permit any value for every element",
            fails_run=False,
            judged=False,
            gravity=2,
            junit="skipped",
            style="cyan",
            colors=("#8a6100", "#e3b341"),
            fails_on_demand=True,
        ),
    )
    WAIVED = (
        "waived",
        StatusTraits(
            "failed or broke because of a known fault of this DirectML version, as a "
            "[waiver](waivers.md) accepts, where a [target](targets.md) promises something else, "
            "or, with the reference under test, where the case disputes it",
            fails_run=False,
            judged=False,
            gravity=3,
            junit="skipped",
            style="yellow",
            colors=("#0969a8", "#79c0ff"),
            checked=True,
            fails_on_demand=True,
        ),
    )
    STALE = (
        "stale",
        StatusTraits(
            "waived, but it passed, failed differently or by a larger margin, or the waiver has "
            "expired",
            fails_run=True,
            judged=True,
            gravity=5,
            junit="failure",
            style="bold red",
            colors=("#b34700", "#ffa657"),
        ),
    )
    NOT_RUN = (
        "not run",
        StatusTraits(
            "the run was interrupted or stopped before the case",
            fails_run=False,
            judged=False,
            gravity=4,
            junit="skipped",
            style="yellow",
            colors=("#57606a", "#9ba5b0"),
            junit_of_run="error",
        ),
    )

    @property
    def fails_run(self) -> bool:
        """Whether one verdict with the status makes the run fail."""
        return self.traits.fails_run

    @property
    def css_class(self) -> str:
        """The CSS class of the status on pages."""
        return self.value.replace(" ", "-")
