"""Write a diagnosis as a folder that can be attached to a bug report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.options import split_options
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.cases.writing.export import export_case
from dmlconf.catalogue.desc import tensors_of
from dmlconf.diagnosis.diagnose import REPETITIONS, Diagnosis
from dmlconf.diagnosis.export.cpp import MOST_BYTES, cpp_program
from dmlconf.diagnosis.export.dxdispatch import unsupported_part, write_model
from dmlconf.documents.whole_files import write_whole
from dmlconf.reports.diagnoses.report import FAILURES, render

__all__ = ["Compilation", "write_case", "write_diagnosis"]

_LISTED: Final = 256
"""The most elements of an input that is a list in the case file; others are files in a folder."""

REPORT: Final = "report.md"

_NODES: Final = (
    "the nodes for `dxdispatch model.json`, with their data, one after another: the JSON of "
    "DxDispatch has no graphs, so this shows whether the nodes alone are right"
)


def write_case(folder: Path, case: Case, origin: str) -> None:
    """Write a reduced case to `case.yaml`.

    Inputs of more than 256 elements and all constants of a graph are files in the folder `case`.
    The inputs of a case that must be rejected are not written.

    Args:
        folder: the folder, which is created.
        origin: the case of the suite from which it is reduced.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "case.yaml"
    inputs = {} if isinstance(case.expectation, ExpectedRejection) else case.inputs()
    large = any(array.size > _LISTED for array in inputs.values())
    if large or case.graph.constants:
        path.with_suffix("").mkdir(exist_ok=True)
    rejection = case.expectation if isinstance(case.expectation, ExpectedRejection) else None
    note = f"Reduced from {origin}."
    export_case(path, case, rejection, inputs, listed=_LISTED, note=note)


@dataclass(frozen=True, slots=True)
class Compilation:
    """How a backend's options ask for operators to be compiled.

    Attributes:
        metacommands: whether the driver's own implementations may be used.
        half: whether intermediate results may be FLOAT16.
        graph: whether each operator is compiled as a graph of one node.
    """

    metacommands: bool
    half: bool
    graph: bool

    @classmethod
    def of(cls, backend: str) -> Compilation:
        """Return what the options of a backend such as `directml:half=on` ask for.

        Without options, only `metacommands` is true.
        """
        _, options = split_options(backend.partition(":")[2])
        return cls(
            options.get("metacommands") != "off",
            options.get("half") == "on",
            options.get("compile") == "graph",
        )


def _title(diagnosis: Diagnosis) -> str:
    verdict = diagnosis.reduced_verdict or diagnosis.verdict
    reason = f": {verdict.reason.message}" if verdict.reason else ""
    return f"{diagnosis.case.operator_name}{reason}"


def _other_forms(
    folder: Path, case: Case, compilation: Compilation, runs: int, title: str
) -> dict[str, str]:
    """Write the case in the forms that suit it: for DxDispatch, and as a C++ program.

    Returns:
        A description of each written file, by its path in the folder.
    """
    if isinstance(case.expectation, ExpectedRejection):
        return {}  # A rejected case has no outputs.
    if case.relation is not None:
        return {}  # Two forms of the graph differ, and neither is known to be wrong.
    files: dict[str, str] = {}
    if unsupported_part(case) is None:
        model = folder / "dxdispatch" / "model.json"
        model.parent.mkdir(exist_ok=True)
        write_model(
            model,
            case,
            metacommands=compilation.metacommands,
            half=compilation.half,
            graph=compilation.graph,
        )
        files["dxdispatch/model.json"] = "the case for `dxdispatch model.json`, with its data"
        if len(case.nodes) > 1:
            files["dxdispatch/model.json"] = _NODES
    if _bytes(case) <= MOST_BYTES:
        source = cpp_program(
            case,
            title,
            metacommands=compilation.metacommands,
            half=compilation.half,
            graph=compilation.graph,
            runs=runs,
        )
        write_whole(folder / "case.cpp", source)
        files["case.cpp"] = "the case as a C++ program against DirectML.h"
    return files


def _bytes(case: Case) -> int:
    """Return how many bytes of tensors a program for a case holds or reads back."""
    tensors = [tensor for _, _, tensor in tensors_of(case.entry, case.desc)]
    tensors += [constant.tensor for constant in case.graph.constants]
    return sum(tensor.TotalTensorSizeInBytes for tensor in tensors)


def write_diagnosis(
    folder: Path,
    diagnosis: Diagnosis,
    environment: Mapping[str, Any],
    backend: str,
    shared: str | None = None,
    failures: Sequence[str] = (),
) -> None:
    """Write the report, and the smallest case in each form that suits it.

    If the case was not reduced, only the report and the list of failures are written.

    Args:
        folder: the folder, which is created.
        environment: the software and device that the backend ran on.
        shared: what the failures in the case's group share; None if unknown.
        failures: the identifiers of these failures; two or more become `failures.txt`.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    if diagnosis.reduced is not None:
        case = diagnosis.reduced.case
        write_case(folder, case, diagnosis.case.identifier)
        files["case.yaml"] = "the case for `dmlconf run`"
        culprit = diagnosis.culprit.factor if diagnosis.culprit else ""
        runs = REPETITIONS if culprit == "repetition" else 1
        files |= _other_forms(folder, case, Compilation.of(backend), runs, _title(diagnosis))
    if len(failures) > 1:
        text = "".join(f"{identifier}\n" for identifier in failures)
        write_whole(folder / FAILURES, text)
        files[FAILURES] = f"the {len(failures):,} cases that fail alike, for `dmlconf run --cases`"
    text = render(diagnosis, environment, backend, shared, files)
    write_whole(folder / REPORT, text)
