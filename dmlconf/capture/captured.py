"""What a journal's lines describe: operators, graphs, and dispatches with kept data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dmlconf.capture.data_statistics import DataStatistics
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc
from dmlconf.documents.wording import counted

__all__ = [
    "Captured",
    "CapturedDispatch",
    "CapturedGraph",
    "CapturedOperator",
    "KeptArray",
    "captured_from",
]


@dataclass(slots=True)
class CapturedOperator:
    """An operator with one desc.

    Attributes:
        desc: as in a case file.
        flags: the DML_EXECUTION_FLAGS that it was compiled with; 0 for nodes of graphs.
        compiled: how often CompileOperator was called for it.
        nodes: the nodes with this desc, as (number of the graph, name of the node); empty if
            `flags` is not 0.
        hresult: what CompileOperator returned last, or S_OK for any success; None if it was not
            called or never returned.
        weights: the data of inputs OWNED_BY_DML at the first initialisation, by tensor; empty
            without `--data weights`.
        statistics: the statistics of inputs with finite elements at the first dispatch, by tensor;
            empty without `--data statistics`.
    """

    operator: str
    desc: Desc
    flags: int = 0
    compiled: int = 0
    nodes: list[tuple[int, str]] = field(default_factory=list)
    hresult: str | None = None
    weights: Mapping[str, KeptArray] = field(default_factory=dict)
    statistics: Mapping[str, DataStatistics] = field(default_factory=dict)


@dataclass(slots=True)
class CapturedGraph:
    """A graph; other attributes are as in `CapturedOperator`.

    Attributes:
        number: its number in the order of first compilations, from 1.
        parts: its inputs, nodes and so on, as in the entry of a case file.
        names: from a part's name in `parts` to the application's own name, if these differ.
        unused: how many more inputs the application's graph has, which nothing reads.
        compiled: how often IDMLDevice1::CompileGraph was called for it.
        hresult: what CompileGraph returned last; None if it never returned.
    """

    number: int
    parts: Mapping[str, Any]
    names: Mapping[str, str]
    unused: int
    flags: int
    compiled: int = 0
    hresult: str | None = None
    weights: Mapping[str, KeptArray] = field(default_factory=dict)
    statistics: Mapping[str, DataStatistics] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptArray:
    """A kept array of the application.

    Attributes:
        file: its NumPy file in the folder of the journal.
        elements: SHA-256 of its elements in row-major order, in hexadecimal.
        finite: whether no element is NaN or infinity.
    """

    file: str
    elements: str
    finite: bool


@dataclass(frozen=True, slots=True)
class CapturedDispatch:
    """A dispatch with its inputs and outputs, by tensor."""

    what: CapturedOperator | CapturedGraph
    inputs: Mapping[str, KeptArray]
    outputs: Mapping[str, KeptArray]


@dataclass(slots=True)
class Captured:
    """Everything that was captured.

    Attributes:
        devices: how many devices were created, including dmlconf's own.
        library: the last known path of a DirectML that created a device; may be empty.
        created: how many operators were created, by name; many are never compiled.
        refused: how often CreateOperator refused a desc, by `OPERATOR: HRESULT`.
        operators: the operators that were compiled, or are nodes of graphs.
        graphs: in the order of their first compilation.
        dispatches: the dispatches whose data was kept, in order.
        skipped: how often something could not be captured, by `WHAT: REASON`.
        failures: the first errors of dmlconf's hooks.
    """

    devices: int = 0
    library: str = ""
    created: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    operators: list[CapturedOperator] = field(default_factory=list)
    graphs: list[CapturedGraph] = field(default_factory=list)
    dispatches: list[CapturedDispatch] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def weights(self) -> Counter[str]:
        """By the file of each kept array: how many weights have this array as their data."""
        owners = [each.weights for each in self.operators]
        owners += [each.weights for each in self.graphs]
        return Counter(kept.file for each in owners for kept in each.values())

    def summary(self) -> str:
        """Return how much was captured: `1 graph of 12 nodes and 3 operators of their own`."""
        compiled = sum(bool(each.compiled) for each in self.operators)
        nodes = sum(len(graph.parts["nodes"]) for graph in self.graphs)
        parts = []
        if self.graphs:
            parts.append(f"{counted(len(self.graphs), 'graph')} of {counted(nodes, 'node')}")
        if compiled or not parts:
            parts.append(f"{counted(compiled, 'operator')}{' of their own' if parts else ''}")
        return " and ".join(parts)


def captured_from(lines: Iterable[Mapping[str, Any]]) -> Captured:
    """Return what the lines of a journal describe; unknown events are ignored."""
    result = Captured()
    numbered: dict[int, CapturedOperator | CapturedGraph] = {}
    by_key: dict[str, CapturedOperator] = {}
    for line in lines:
        match line.get("event"):
            case "device":
                result.devices += 1
                result.library = str(line.get("library", "")) or result.library
            case "created":
                result.created[line["operator"]] += 1
            case "refused":
                result.refused[f"{_type_name(line['type'])}: {line['hresult']}"] += 1
            case "skipped":
                result.skipped[f"{line['what']}: {line['reason']}"] += 1
            case "failure":
                result.failures.append(str(line["reason"]))
            case "compile":
                number = int(line["number"])
                if number not in numbered and ("operator" in line or "graph" in line):
                    numbered[number] = _new(line, result, by_key)
                if number in numbered:  # If not, its description was too long to be written.
                    numbered[number].compiled += 1
            case "compiled" | "dispatch" | "statistics" | "weights":
                what = numbered.get(int(line["number"]))
                if what is not None:
                    _add(line, what, result)
    return result


def _add(line: Mapping[str, Any], what: CapturedOperator | CapturedGraph, result: Captured) -> None:
    match line["event"]:
        case "compiled":
            what.hresult = str(line["hresult"])
        case "weights":
            what.weights = what.weights or _arrays(line["inputs"])
        case "statistics":
            what.statistics = what.statistics or _statistics(line["inputs"])
        case "dispatch":
            sides = (_arrays(line[side]) for side in ("inputs", "outputs"))
            result.dispatches.append(CapturedDispatch(what, *sides))


def _arrays(kept: Mapping[str, Any]) -> Mapping[str, KeptArray]:
    return {
        name: KeptArray(str(each["file"]), str(each["elements"]), bool(each["finite"]))
        for name, each in kept.items()
    }


def _statistics(kept: Mapping[str, Any]) -> Mapping[str, DataStatistics]:
    return {
        name: DataStatistics(**each["statistics"])
        for name, each in kept.items()
        if each["statistics"] is not None
    }


def _new(
    line: Mapping[str, Any], result: Captured, by_key: dict[str, CapturedOperator]
) -> CapturedOperator | CapturedGraph:
    flags = int(line["flags"])
    if "operator" in line:
        operator = CapturedOperator(line["operator"], line["desc"], flags)
        key = _key(operator.operator, operator.desc, flags)
        known = by_key.setdefault(key, operator)
        if known is operator:
            result.operators.append(operator)
        return known
    graph = CapturedGraph(
        len(result.graphs) + 1, line["graph"], line["names"], int(line["unused"]), flags
    )
    result.graphs.append(graph)
    for name, node in graph.parts["nodes"].items():
        desc = {field: _without_sources(value) for field, value in node["desc"].items()}
        key = _key(node["operator"], desc, 0)
        if key not in by_key:
            by_key[key] = CapturedOperator(node["operator"], desc)
            result.operators.append(by_key[key])
        by_key[key].nodes.append((graph.number, graph.names.get(name, name)))
    return graph


def _without_sources(value: Any) -> Any:
    """Return a field of a node's desc without the names of the tensors that it reads."""
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if key != "from"}
    return [_without_sources(item) for item in value] if isinstance(value, list) else value


def _key(operator: str, desc: Desc, flags: int) -> str:
    return f"{operator} {flags} {desc!r}"


def _type_name(number: int) -> str:
    for name in catalogue.operator_names():
        if catalogue.operator(name).type_value == number:
            return name
    return f"DML_OPERATOR_TYPE {number}"
