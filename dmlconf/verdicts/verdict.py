"""Verdicts: the result of each case of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from dmlconf.cases.model import Provenance
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.record import ALWAYS, NUMBERS, PART, Positional, Rounded
from dmlconf.verdicts.status import Status

__all__ = [
    "OF_VALUES",
    "Execution",
    "Identity",
    "Judgement",
    "LostProcess",
    "Reason",
    "ReasonKind",
    "Status",
    "VariantResult",
    "Verdict",
    "failing_variants",
]


class ReasonKind(StrEnum):
    """Why a verdict is not `passed`. Logs have the texts, which must not change."""

    WRONG_VALUES = "wrong values"
    WRONG_SIZES = "wrong sizes"
    WRONG_DATA_TYPE = "wrong data type"
    MISSING_OUTPUT = "missing output"
    OUTPUT_NOT_WRITTEN = "output not written"
    ALL_ZEROS = "output all zeros"
    INPUT_COPIED = "output copies an input"
    OUTPUTS_DISAGREE = "outputs contradict each other"
    GUARD_BAND_TOUCHED = "guard band touched"
    INPUT_CHANGED = "input changed"
    NOT_DETERMINISTIC = "not deterministic"
    NOT_REPRODUCIBLE = "not reproducible"
    RELATION = "relation broken"
    CONTRADICTION = "expectation contradicts the reference"
    MEMORY_LEAK = "memory not given back"
    ERROR_MESSAGE = "error message of the driver or a debug layer"
    ACCEPTED_INVALID = "accepted what must be rejected"
    REJECTED_SUPPORTED = "rejected what is supported"
    WRONG_REJECTION = "rejected otherwise than expected"
    CRASH = "crash"
    HANG = "hang"
    DEVICE_REMOVED = "device removed"
    OUT_OF_MEMORY = "out of memory"
    BACKEND_ERROR = "backend error"
    JUDGING_ERROR = "error of dmlconf while judging"
    FEATURE_LEVEL = "feature level"
    DATA_TYPE = "data type"
    MEMORY = "memory"
    NOT_EXPRESSIBLE = "not expressible by the backend"
    SUBSTRATE = "limit of the substrate"
    KNOWN_FAULT = "known fault of DirectML"
    DEVIATION = "promised otherwise by the target"
    WAIVER = "waiver"
    WAIVED_PASSES = "passes though waived"
    FAILS_OTHERWISE = "fails otherwise than waived"
    FAILS_WORSE = "fails worse than waived"
    WAIVER_EXPIRED = "waiver expired"
    DISPUTED_REFERENCE = "disputed by the case"
    NOT_DOCUMENTED = "not documented as supported"
    NO_INDEPENDENT_EXPECTATION = "no independent expectation"
    ANY_VALUE_PERMITTED = "any value permitted"
    INTERRUPTED = "interrupted"
    STOPPED_AT_FIRST_FAILURE = "stopped at the first failure"
    TOO_MANY_FAILURES = "stopped after too many failures"


OF_VALUES: Final = frozenset(
    {
        ReasonKind.WRONG_VALUES,
        ReasonKind.ALL_ZEROS,
        ReasonKind.INPUT_COPIED,
        ReasonKind.OUTPUTS_DISAGREE,
    }
)
"""Reasons that say that values are wrong."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a case has its status.

    Attributes:
        message: the particulars, one sentence.
        differences: the first elements that differ, each at least with `tensor`, `coordinates` and
            `expected`.
        diagnostics: the standard error of the backend's process, a traceback or debug messages for
            a breakdown; the traceback for an error of dmlconf; otherwise empty.
    """

    kind: ReasonKind
    message: str
    differences: tuple[Mapping[str, Annotated[Any, NUMBERS]], ...] = field(
        default=(), metadata=ALWAYS
    )
    diagnostics: str = field(default="", metadata=ALWAYS)


@dataclass(frozen=True, slots=True)
class VariantResult:
    """The result of a case in one variant of a backend, such as `metacommands=off`.

    Attributes:
        message: the particulars of the reason.
        differing_bits: how many elements of each output have other bits than in the first variant
            with outputs. Outputs with equal bits, other sizes or another data type are left out.
        dispatch_seconds: how long each dispatch took by the device's clock.
    """

    status: Status
    reason: ReasonKind | None = None
    message: str = ""
    differing_bits: Mapping[str, int] = field(default_factory=dict)
    seconds: Annotated[float, Rounded(6)] = field(default=0.0, metadata=ALWAYS)
    dispatch_seconds: tuple[Annotated[float, Rounded(9)], ...] = ()


def failing_variants(variants: Mapping[str, VariantResult]) -> str:
    """Return which variants fail, as text; empty if none or all fail.

    The text is the options that all failing variants share, such as `metacommands=on`, if no other
    variant has them all. Otherwise it is the labels of the failing variants.
    """
    failing = [label for label, result in variants.items() if result.status.fails_run]
    if not failing or len(failing) == len(variants):
        return ""
    shared = [
        term for term in failing[0].split(",") if all(term in label.split(",") for label in failing)
    ]
    matching = [label for label in variants if set(shared) <= set(label.split(","))]
    return ",".join(shared) if shared and matching == failing else " and ".join(failing)


@dataclass(frozen=True, slots=True)
class Identity(Positional):
    """The case that a verdict judges.

    Attributes:
        origin: where the case says that its expectation comes from, or None.
        files: SHA-256 in hexadecimal of the case's data files, by name.
        example: the number or name of the documentation's example that the case is, or None.
        facts: what `dmlconf.cases.facts.facts_of` returns; empty if the run did not reach the case.
        feature_level: the lowest feature level that supports the desc, such as `5_0`; None if the
            run did not reach the case.
        disputes: `reference` if the case says that the reference is wrong; otherwise None.
    """

    case: str
    operator: str
    tags: tuple[str, ...]
    location: str = field(default="", metadata=ALWAYS)
    origin: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    example: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    feature_level: str | None = None
    disputes: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement(Positional):
    """The status of a case, with reasons and figures.

    Attributes:
        unchecked_outputs: if some outputs were compared, the others, which have no independent
            expectation.
        circumstance: the circumstance that failed after a plain run that passed, or None.
        circumstances: the result under each circumstance up to the first that fails: a status, or
            `not applicable`.
        variants: the result in each variant, by label; empty if there is only one.
        attempts: the status of each run of a case that failed and was run again; otherwise empty.
    """

    status: Status
    expectation: Provenance | None = field(default=None, metadata=ALWAYS)
    reason: Reason | None = field(default=None, metadata=ALWAYS)
    figures: Mapping[str, Figures] = field(default_factory=dict, metadata=ALWAYS)
    unchecked_outputs: tuple[str, ...] = ()
    circumstance: str | None = None
    circumstances: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, VariantResult] = field(default_factory=dict)
    attempts: tuple[Status, ...] = ()


@dataclass(frozen=True, slots=True)
class LostProcess:
    """A worker process that broke down while a case ran in it or waited there.

    Attributes:
        kind: a crash, a hang or a removed device.
        process: the number of the process, from 1.
        sequence: the number of the case among the cases of the process, from 1.
        together: how many cases of the process had no outcome yet; each may be the cause.
        blamed: whether the case was blamed; if not, it ran again.
    """

    kind: ReasonKind
    message: str
    process: int
    sequence: int
    together: int
    blamed: bool = False


@dataclass(frozen=True, slots=True)
class Execution(Positional):
    """How and where a case ran.

    `process`, `sequence` and `lost_processes` do not count in comparisons.

    Attributes:
        dispatch_seconds: how long each dispatch took by the device's clock; empty without a clock.
        output_digests: the first 16 hexadecimal digits of each output's `elements_digest`.
        warnings: the warnings of the driver or a debug layer, which do not fail the case.
        worker: the fleet's worker that ran the case; None for the run's own machine.
        process: the number of the worker process that ran the case; None for dmlconf's own process.
        sequence: the number of the case among the cases of the process.
        lost_processes: the worker processes that broke down while the case ran or waited in them.
    """

    seconds: Annotated[float, Rounded(6)] = field(default=0.0, metadata=ALWAYS)
    dispatch_seconds: tuple[Annotated[float, Rounded(9)], ...] = ()
    output_digests: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    worker: str | None = None
    process: int | None = field(default=None, compare=False)
    sequence: int | None = field(default=None, compare=False)
    lost_processes: tuple[LostProcess, ...] = field(default=(), compare=False)

    @property
    def last_process(self) -> int:
        """The highest number of a process in this execution, or 0."""
        return max((self.process or 0, *(lost.process for lost in self.lost_processes)))

    def with_processes_after(self, last: int) -> Execution:
        """Return the execution with `last` added to the numbers of its processes."""
        lost = tuple(replace(each, process=each.process + last) for each in self.lost_processes)
        process = None if self.process is None else self.process + last
        return replace(self, process=process, lost_processes=lost)


@dataclass(frozen=True, slots=True)
class Verdict(Positional):
    """What a run says about one case.

    Some fields of the parts are also properties: `verdict.status` is `verdict.judgement.status`.
    """

    identity: Identity = field(metadata=PART)
    judgement: Judgement = field(metadata=PART)
    execution: Execution = field(default=Execution(), metadata=PART)

    RECORD_ORDER: ClassVar[tuple[str, ...]] = (
        *("case", "operator", "tags", "status", "expectation", "reason", "figures", "seconds"),
        *("location", "dispatch_seconds", "unchecked_outputs", "output_digests", "origin"),
        *("files", "example", "facts", "feature_level", "circumstance", "circumstances"),
        *("variants", "warnings", "attempts", "worker", "process", "sequence", "disputes"),
        "lost_processes",
    )
    """The order of the fields of all parts in a line of a log."""

    @property
    def case(self) -> str:
        """The case's identifier."""
        return self.identity.case

    @property
    def operator(self) -> str:
        """The operator's name in the catalogue."""
        return self.identity.operator

    @property
    def tags(self) -> tuple[str, ...]:
        """The case's tags."""
        return self.identity.tags

    @property
    def location(self) -> str:
        """The case's file and line."""
        return self.identity.location

    @property
    def facts(self) -> Mapping[str, Any]:
        """The facts of the case's desc."""
        return self.identity.facts

    @property
    def status(self) -> Status:
        """The status of the case."""
        return self.judgement.status

    @property
    def expectation(self) -> Provenance | None:
        """Where the used expectation comes from; None if none was used."""
        return self.judgement.expectation

    @property
    def reason(self) -> Reason | None:
        """The reason; None if the case passed."""
        return self.judgement.reason

    @property
    def figures(self) -> Mapping[str, Figures]:
        """The figures of each compared output."""
        return self.judgement.figures

    @property
    def circumstance(self) -> str | None:
        """The circumstance that failed after a plain run that passed, or None."""
        return self.judgement.circumstance

    @property
    def seconds(self) -> float:
        """How long the backend took."""
        return self.execution.seconds

    def of_case(self, **changes: Any) -> Verdict:
        """Return the verdict with changes of its identity."""
        return replace(self, identity=replace(self.identity, **changes))

    def judged(self, **changes: Any) -> Verdict:
        """Return the verdict with changes of its judgement."""
        return replace(self, judgement=replace(self.judgement, **changes))

    def ran(self, **changes: Any) -> Verdict:
        """Return the verdict with changes of its execution."""
        return replace(self, execution=replace(self.execution, **changes))
