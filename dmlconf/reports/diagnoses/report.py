"""The report on a failing case that `dmlconf diagnose` writes as `report.md`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dmlconf.backends.subject import tested_environment
from dmlconf.cases.facts import facts_of, tensor_text
from dmlconf.cases.model import Case
from dmlconf.cases.writing.desc_entry import attribute_entry
from dmlconf.diagnosis.diagnose import Diagnosis, Trial
from dmlconf.diagnosis.reduction.cost import element_count
from dmlconf.documents.wording import counted
from dmlconf.graphs.model import Constant, Graph, Slot
from dmlconf.reports.markdown_text import cell, row, table
from dmlconf.reports.runs.summary import MOST_DIAGNOSTIC_LINES
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import OF_VALUES, Verdict

__all__ = ["FAILURES", "culprit_sentence", "reduction_sentence", "render", "rewrite_sentence"]

FAILURES: Final = "failures.txt"
"""The name of the file that lists the failures of the case's group."""

_MOST_VALUES: Final = 64
"""The most elements of an input or constant that the report shows."""
_MOST_ELEMENTS: Final = 8
"""The most wrong elements that the report shows."""
_ENVIRONMENT: Final = ("backend", "version", "adapter", "driver", "platform")


def culprit_sentence(diagnosis: Diagnosis) -> str:
    """Return a sentence that names the culprit, or says why none is known."""
    if diagnosis.culprit is not None:
        return diagnosis.culprit.sentence
    if diagnosis.is_known_fault:
        reason = diagnosis.verdict.reason
        return f"A known fault of DirectML: {reason.message if reason else ''}"
    if not diagnosis.reproduced:
        return "The failure did not recur, so nothing can be blamed."
    telling = sum(t.verdict is not None and t.experiment.tells for t in diagnosis.trials)
    if not telling:
        return "No factor could be changed."
    reason = diagnosis.verdict.reason
    wrong = reason is not None and reason.kind in OF_VALUES
    end = ", so the computation itself is wrong" if wrong else ""
    count = "the one change that was tried" if telling == 1 else f"each of {telling} changes"
    return f"No factor is to blame: the case fails with {count}{end}."


def reduction_sentence(diagnosis: Diagnosis) -> str:
    """Return a sentence on how small the case was made, or why it was not reduced."""
    reduced = diagnosis.reduced
    if diagnosis.is_known_fault:
        return "Not reduced, as it is a known fault; `dmlconf faults` explains it."
    if reduced is None:
        return "The case could not be reduced."
    before, after = element_count(diagnosis.case), element_count(reduced.case)
    end = "" if reduced.complete else "; the reduction was stopped early"
    elements = counted(before, "element")
    trials = counted(reduced.trials, "trial")
    return f"{elements} became {after:,} in {trials}{end}."


def rewrite_sentence(diagnosis: Diagnosis) -> str | None:
    """Return a sentence on the wrong rewrite that would give the same outputs; None if unknown."""
    mutant = diagnosis.rewritten
    if mutant is None:
        return None
    return f"Equal in every bit to what you get if {mutant.what} ({mutant.rewrite})."


def render(
    diagnosis: Diagnosis,
    environment: Mapping[str, Any],
    backend: str,
    shared: str | None,
    files: Mapping[str, str],
) -> str:
    """Return the report on a failure.

    Args:
        environment: the software and device that the backend ran on.
        shared: what the failures in the case's group share; None if unknown.
        files: descriptions of the other files in the folder, by name.
    """
    lines = _lines(diagnosis, environment, backend, shared, files)
    return "\n".join(lines) + "\n"


def _lines(
    diagnosis: Diagnosis,
    environment: Mapping[str, Any],
    backend: str,
    shared: str | None,
    files: Mapping[str, str],
) -> Iterator[str]:
    verdict = diagnosis.verdict
    reason = str(verdict.reason.kind if verdict.reason else verdict.status)
    yield f"# {diagnosis.case.operator_name}: {reason}"
    yield ""
    yield culprit_sentence(diagnosis)
    yield ""
    rewrite = rewrite_sentence(diagnosis)
    if rewrite is not None:
        yield from (rewrite, "")
    yield from _facts(diagnosis, environment, shared)
    smallest = diagnosis.reduced.case if diagnosis.reduced else diagnosis.case
    yield from _case("The smallest case that fails", smallest)
    if diagnosis.reduced_verdict is not None:
        yield from _outcome(diagnosis.reduced_verdict)
    yield from _trials(diagnosis.trials)
    yield "## Run it again"
    yield ""
    yield "```sh"
    if "case.yaml" in files:
        yield shlex.join(["dmlconf", "run", "case.yaml", "-b", backend])
    yield shlex.join(["dmlconf", "run", "-b", backend, "--case", diagnosis.case.identifier])
    if FAILURES in files:
        yield shlex.join(["dmlconf", "run", "-b", backend, "--cases", FAILURES])
    yield "```"
    yield ""
    yield from _without_dmlconf(files)
    yield "## Files"
    yield ""
    yield from (f"- `{name}`: {text}" for name, text in files.items())
    for note in diagnosis.notes:
        yield ""
        yield note


def _without_dmlconf(files: Mapping[str, str]) -> Iterator[str]:
    commands = [
        *(["cl /std:c++17 /EHsc case.cpp", "case.exe"] if "case.cpp" in files else []),
        *(["dxdispatch dxdispatch/model.json"] if "dxdispatch/model.json" in files else []),
    ]
    if commands:
        yield "Without dmlconf, on Windows:"
        yield ""
        yield "```bat"
        yield from commands
        yield "```"
        yield ""


def _facts(
    diagnosis: Diagnosis, environment: Mapping[str, Any], shared: str | None
) -> Iterator[str]:
    record = tested_environment(environment)
    if shared is not None:
        yield f"- What the failures of the run share: {shared}"
    yield f"- Case of the suite: `{diagnosis.case.identifier}`"
    runs = f"{diagnosis.runs} run{'s' if diagnosis.runs != 1 else ''}"
    yield f"- Alone, the case failed in {diagnosis.failures} of {runs}."
    yield f"- Reduction: {reduction_sentence(diagnosis)}"
    device = [f"{name} {record[name]}" for name in _ENVIRONMENT if record.get(name)]
    yield f"- Ran on: {', '.join(device)}"
    details = record.get("details", {})
    if "directml_sha256" in details:
        yield f"- SHA-256 of DirectML: `{details['directml_sha256']}`"
    yield ""


def _case(heading: str, case: Case) -> Iterator[str]:
    yield f"## {heading}"
    yield ""
    rows = dict(facts_of(case))
    data = case.inputs() if case.expectation is None else {}
    cells = []
    for name, value in rows.items():
        items = value if isinstance(value, list) and f"{name}[0]" in data else [value]
        for index, item in enumerate(items):
            tensor = name if items[0] is value else f"{name}[{index}]"
            cells.append((tensor, _cell(item), _values(data[tensor]) if tensor in data else ""))
    yield from table(["Field", "Value", "Data"], cells)
    yield ""
    if case.nodes:
        yield from _nodes(case.graph)


def _nodes(graph: Graph) -> Iterator[str]:
    """Yield a table of the nodes and constants in topological order."""
    sources = graph.sources()
    outputs: dict[Slot, list[str]] = {}
    for name, slot in graph.output_sources().items():
        outputs.setdefault(slot, []).append(name)
    yield from table(["Node", "Operator", "Tensors", "Attributes"], [])
    for node in graph.in_order():
        if isinstance(node, Constant):
            values = _values(node.data)
            yield row((node.name, "constant", tensor_text(node.tensor), values))
            continue
        tensors = [
            f"{name} {tensor_text(tensor)} from {_source(sources.get((node.name, name)))}"
            for name, tensor in node.inputs.items()
        ]
        for name, tensor in node.outputs.items():
            into = " and ".join(outputs.get((node.name, name), ()))
            tensors.append(f"{name} {tensor_text(tensor)}{f' is {into}' if into else ''}")
        attributes = [
            f"{field.name} {_cell(attribute_entry(node.desc[field.name]))}"
            for field in node.operator.fields
            if not field.is_tensor and node.desc.get(field.name) is not None
        ]
        yield row((node.name, node.operator_name, "; ".join(tensors), "; ".join(attributes)))
    yield ""


def _source(source: str | Slot | None) -> str:
    return ".".join(source) if isinstance(source, tuple) else str(source)


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_cell, value)) or "none"
    return cell(str(value))


def _values(array: Array) -> str:
    flat = array.ravel()
    digits = 17 if array.dtype == np.float64 else 9  # Enough to tell any two numbers apart.
    listed = flat[:_MOST_VALUES].tolist()
    texts = (f"{each:.{digits}g}" if isinstance(each, float) else str(each) for each in listed)
    shown = ", ".join(texts)
    return shown + (f", ... ({flat.size:,} elements)" if flat.size > _MOST_VALUES else "")


def _outcome(verdict: Verdict) -> Iterator[str]:
    reason = verdict.reason
    if reason is None:
        return
    yield "## What is wrong"
    yield ""
    yield f"{reason.message}."
    yield ""
    if reason.differences:
        headings = ["Tensor", "Coordinates", "Expected", "Allowed", "Actual"]
        yield from table(headings, map(_element, reason.differences[:_MOST_ELEMENTS]))
        yield ""
    if reason.diagnostics:
        yield "```text"
        yield from reason.diagnostics.strip().splitlines()[-MOST_DIAGNOSTIC_LINES:]
        yield "```"
        yield ""


def _element(difference: Mapping[str, Any]) -> tuple[str, ...]:
    allowed = " or ".join(_interval(ends) for ends in difference.get("allowed", ()))
    coordinates = ", ".join(map(str, difference["coordinates"]))
    expected, actual = str(difference["expected"]), str(difference["actual"])
    return str(difference["tensor"]), coordinates, expected, allowed, actual


def _interval(ends: Sequence[Any]) -> str:
    low, high = ends[0], ends[-1]
    return f"{low}" if low == high else f"{low} to {high}"


def _trials(trials: Sequence[Trial]) -> Iterator[str]:
    if not trials:
        return
    yield "## Changes of the smallest case"
    yield ""
    rows = ((_cell(trial.experiment.change), _cell(_result(trial))) for trial in trials)
    yield from table(["Changed", "Result"], rows)
    yield ""


def _result(trial: Trial) -> str:
    if trial.verdict is None:
        return f"not run: {trial.message}"
    verdict = trial.verdict
    if verdict.reason is None:
        return str(verdict.status)
    return f"{verdict.status}: {verdict.reason.kind}"
