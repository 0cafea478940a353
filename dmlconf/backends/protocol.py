"""The protocol of backends: environments, capabilities, and the outcomes of cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from dmlconf.cases.model import Case
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.documents.problems import ExpectedError
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.sample import Sample

__all__ = [
    "Backend",
    "BackendError",
    "Breakdown",
    "BreakdownKind",
    "Capabilities",
    "Declined",
    "Environment",
    "Fault",
    "FaultKind",
    "Outcome",
    "Outputs",
    "Rejection",
    "WaitsForDevice",
]


class BackendError(ExpectedError):
    """A backend cannot be used, or not in the way that was asked for.

    Attributes:
        hint: what to do, on separate lines; None if the message suffices.
    """

    def __init__(self, message: str = "", hint: str | None = None) -> None:
        self.message, self.hint = message, hint
        super().__init__(message if hint is None else f"{message}\n{hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.hint)


@dataclass(frozen=True, slots=True)
class Environment:
    """The software and the device that results come from.

    Attributes:
        version: the version of the software that computes, such as DirectML's or NumPy's.
        adapter: a description of the device; None if there is none.
        driver: the driver's version; None if it is unknown or there is no driver.
        details: anything else that a result may depend on, such as flags and digests of files.
    """

    backend: str
    version: str
    adapter: str | None = None
    driver: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can run.

    Attributes:
        feature_level: the highest feature level that it supports.
        memory: bytes that the tensors of a case may take together; None if unknown.
        half_precision: whether it may compute FLOAT16 outputs in FLOAT16 throughout, as
            DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION permits; this widens rules for sums.
        circumstances: names of the circumstances under which it can run cases; with any, it is a
            `dmlconf.backends.circumstances.Exerciser`.
        compiles_graphs: whether it compiles a graph as a whole, so that the graph's nodes, run one
            by one, may give other bits.
    """

    feature_level: FeatureLevel
    data_types: frozenset[DataType]
    memory: int | None = None
    half_precision: bool = False
    circumstances: frozenset[str] = frozenset()
    compiles_graphs: bool = False


class FaultKind(StrEnum):
    """The kinds of faults that a backend can detect."""

    GUARD_BAND = "guard band touched"
    INPUT = "input changed"
    NOT_DETERMINISTIC = "not deterministic"
    NOT_WRITTEN = "output not written"
    LEAK = "memory not given back"
    MESSAGE = "error message of the driver or a debug layer"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of an operator.

    Attributes:
        output: the output that it concerns; empty if it concerns none.
        elements: row-major indices of the concerned elements; None if unknown.
    """

    kind: FaultKind
    message: str
    output: str = ""
    elements: Array | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Outputs:
    """The backend ran the case.

    Attributes:
        arrays: the outputs by tensor. The shape must be the tensor's Sizes, and the dtype that of
            its data type; INT4 and UINT4 take one byte per element.
        seconds: how long the case took; 0 if the backend does not measure it.
        faults: what the operator did wrong apart from the values.
        dispatch_seconds: how long each dispatch took by the device's own clock, if known.
        samples: for outputs that a recording keeps in part, a digest and some elements.
        warnings: warnings of the driver or a debug layer; they do not fail the case.
    """

    arrays: Mapping[str, Array]
    seconds: float = 0.0
    faults: tuple[Fault, ...] = ()
    dispatch_seconds: tuple[float, ...] = ()
    samples: Mapping[str, Sample] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """The backend refused the case.

    Attributes:
        stage: the call that refused it, such as `CreateOperator`.
        hresult: the name of the HRESULT, such as `E_INVALIDARG`, or of another runtime's error.
        constraints: names of the constraints that the backend reports as violated, if it can.
        node: the refused node of the graph; empty if the whole case was refused.
        message: why, according to the runtime or a debug layer; may be empty.
        warnings: as in `Outputs`.
    """

    stage: str
    hresult: str
    constraints: tuple[str, ...] = ()
    seconds: float = 0.0
    node: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declined:
    """The backend cannot express the case: what it runs on has no counterpart for it.

    Attributes:
        reason: what cannot be expressed, such as `ONNX has no gradient of RELU`.
    """

    reason: str
    seconds: float = 0.0


class BreakdownKind(StrEnum):
    """The ways in which a backend can break down."""

    CRASH = "crash"
    HANG = "hang"
    DEVICE_REMOVED = "device removed"
    OUT_OF_MEMORY = "out of memory"
    ERROR = "backend error"


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The backend broke down on the case.

    Attributes:
        diagnostics: what its process wrote, a traceback, or messages of debug layers.
    """

    kind: BreakdownKind
    message: str
    diagnostics: str = ""
    seconds: float = 0.0

    @property
    def device_lost(self) -> bool:
        """Whether the device is removed or hangs; the process then runs no other case."""
        return self.kind in (BreakdownKind.DEVICE_REMOVED, BreakdownKind.HANG)


Outcome = Outputs | Rejection | Breakdown | Declined


class Backend(Protocol):
    """Something that runs cases. It never judges its own results.

    A backend is created, used and closed by one thread, in dmlconf's process or in a worker.
    """

    def environment(self) -> Environment:
        """Return the software and the device that the backend runs on."""
        ...

    def capabilities(self) -> Capabilities:
        """Return what the backend can run."""
        ...

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield one outcome for each case, in order and as soon as it is known.

        After an exception, the cases without an outcome run again, one at a time. A case that then
        raises an exception breaks down.
        """
        ...

    def close(self) -> None:
        """Release everything that the backend holds.

        This is the last call. It is left out if the process is killed or crashes.
        """
        ...


@runtime_checkable
class WaitsForDevice(Protocol):
    """A backend that limits its own waits for a device, and reports a longer one as a hang."""

    def limit_waits(self, seconds: float) -> None:
        """Set how long one wait may take.

        A worker process calls this before the first case, with fewer seconds than a case may take,
        so that the backend can report a hang before its process is ended.
        """
        ...
