"""Verdicts: what a run says of each case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dmlconf.cases.model import Provenance

__all__ = ["Reason", "ReasonKind", "Status", "VariantResult", "Verdict", "failing_variants"]


class Status(StrEnum):
    """The judgement on one case."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"
    UNSUPPORTED = "unsupported"
    UNCHECKED = "unchecked"
    WAIVED = "waived"
    STALE = "stale"
    NOT_RUN = "not run"

    @property
    def fails_run(self) -> bool:
        """Whether one such verdict makes the run fail."""
        return self in (Status.FAILED, Status.BROKEN, Status.STALE)


class ReasonKind(StrEnum):
    """Why a verdict is not simply `passed`."""

    WRONG_VALUES = "wrong values"
    WRONG_SIZES = "wrong sizes"
    WRONG_DATA_TYPE = "wrong data type"
    MISSING_OUTPUT = "missing output"
    OUTPUT_NOT_WRITTEN = "output not written"
    ALL_ZEROS = "output all zeros"
    INPUT_COPIED = "output copies an input"
    GUARD_BAND_TOUCHED = "guard band touched"
    INPUT_CHANGED = "input changed"
    NOT_DETERMINISTIC = "not deterministic"
    NOT_REPRODUCIBLE = "not reproducible"
    RELATION = "relation broken"
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
    SUBSTRATE = "limit of the substrate"
    KNOWN_FAULT = "known fault of DirectML"
    WAIVER = "waiver"
    WAIVED_PASSES = "passes though waived"
    FAILS_OTHERWISE = "fails otherwise than waived"
    FAILS_WORSE = "fails worse than waived"
    WAIVER_EXPIRED = "waiver expired"
    NOT_DOCUMENTED = "not documented as supported"
    NO_INDEPENDENT_EXPECTATION = "no independent expectation"
    ANY_VALUE_PERMITTED = "any value permitted"
    INTERRUPTED = "interrupted"
    STOPPED_AT_FIRST_FAILURE = "stopped at the first failure"
    TOO_MANY_FAILURES = "stopped after too many failures"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a case has its status.

    Attributes:
        kind: one of a fixed set.
        message: the particulars, one sentence.
        differences: for wrong values, the first elements that differ; each has `tensor`,
            `coordinates`, `expected` and `actual`.
        diagnostics: what the backend's process wrote to standard error, or nothing.
    """

    kind: ReasonKind
    message: str
    differences: tuple[Mapping[str, Any], ...] = ()
    diagnostics: str = ""


@dataclass(frozen=True, slots=True)
class VariantResult:
    """What a case came to in one variant of a backend, such as `metacommands=off`.

    Attributes:
        status: the judgement on this variant alone.
        reason: why, unless it passed.
        message: the particulars of the reason.
        differing_bits: by output, how many elements have other bits than in the first variant;
            nothing where none has, or where one of the two gave no outputs.
        seconds: how long the backend took.
        dispatch_seconds: how long each dispatch took by the device's own clock.
    """

    status: Status
    reason: ReasonKind | None = None
    message: str = ""
    differing_bits: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    dispatch_seconds: tuple[float, ...] = ()


def failing_variants(variants: Mapping[str, VariantResult]) -> str:
    """Return the variants that fail, as `metacommands=on`; empty where none fails, or all do.

    Of several options only those are named that all failing variants have and no other has.
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
class Verdict:
    """The judgement on one case.

    Attributes:
        case: the case's identifier.
        operator: the operator's name in the catalogue.
        tags: the case's tags.
        status: the judgement.
        expectation: where the expected values come from; None where there are none.
        reason: why, unless the case passed.
        figures: by output tensor: `elements`, `differing`, `worst_ulp` (None for integers),
            `rule`, `limit`, `margin`, `source`, `open`, `loose` and more, as the run log's schema
            tells.
        seconds: how long the backend took.
        location: the case's file and line.
        dispatch_seconds: how long each dispatch took by the device's own clock; empty where it
            has none.
        unchecked_outputs: outputs that nothing independent tells the right values of, beside
            others that were compared.
        output_digests: the first 16 hexadecimal digits of the SHA-256 of each output's elements,
            which tell whether two runs gave the same bits.
        origin: where the case's own expectation is from, as it says; None where it does not.
        files: SHA-256 in hexadecimal of the files that the case's data are from, by name.
        example: the number or name of the page's example that the case is, or None.
        facts: of the case's desc, as `dmlconf.cases.facts.facts_of` returns them; nothing where
            the run never came to the case.
        feature_level: the lowest feature level that has all parts of the desc, such as `5_0`, by
            which `--feature-level` chooses; None where the run never came to the case.
        circumstance: the circumstance under which the case failed, having passed plainly; None for
            every other verdict.
        circumstances: what came of the case under each circumstance: a status, or `not applicable`;
            nothing where it ran only plainly.
        variants: what the case came to in each variant of the backend, by label; nothing where
            the backend has only one.
        warnings: what the driver or a debug layer warned of; they fail nothing.
    """

    case: str
    operator: str
    tags: tuple[str, ...]
    status: Status
    expectation: Provenance | None
    reason: Reason | None
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0
    location: str = ""
    dispatch_seconds: tuple[float, ...] = ()
    unchecked_outputs: tuple[str, ...] = ()
    output_digests: Mapping[str, str] = field(default_factory=dict)
    origin: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    example: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    feature_level: str | None = None
    circumstance: str | None = None
    circumstances: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, VariantResult] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    attempts: tuple[Status, ...] = ()
    worker: str | None = None
