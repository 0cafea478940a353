"""Build a graph case from its entry in a file, and from its parameters if the entry is a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from dmlconf.cases.building.files import CaseFiles
from dmlconf.cases.building.formulas import Fixed, evaluated, prepared
from dmlconf.cases.building.graph_nodes import (
    NodeEntry,
    NodeReader,
    Source,
    UnreadSourceError,
    node_entries,
)
from dmlconf.cases.building.operator_build import challenged_data, read_expectation
from dmlconf.cases.building.tensor_entry import read_tensor, require_list
from dmlconf.cases.errors import CaseError, CaseErrors
from dmlconf.cases.graph_case import GraphCase, problem_location
from dmlconf.cases.model import CaseTemplate, ExpectedOutputs, ExpectedRejection, Fill, PlannedCase
from dmlconf.cases.tolerance import read_tolerances
from dmlconf.catalogue.constraints import constraint_names
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.graph import GRAPH_FACTS, GRAPHS, graph_entry
from dmlconf.documents.problems import name_hint
from dmlconf.expressions import Budget, Namespace, namespace
from dmlconf.graphs.model import Constant, Graph, InputEdge, IntermediateEdge, OutputEdge
from dmlconf.graphs.relations import Relation, lacking
from dmlconf.graphs.wiring import WIRING_RULES, wiring_problems
from dmlconf.limits import MOST_CASE_STEPS
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.fills import fill
from dmlconf.tensors.layout import as_stored

__all__ = ["build_graph", "operators_in", "read_relation"]

_Data = dict[str, Array | Fill]

_Entries = dict[tuple[str, str], Any]
"""Entries of tensors by their location in the case's entry, such as `("inputs", "X")`."""


def build_graph(planned: PlannedCase, *, wired: bool = True) -> GraphCase:
    """Build a graph case.

    Args:
        wired: whether to check the `WIRING_RULES`, and whether the graph can take the relation's
            form. Neither is checked if the case expects a rejection.

    Raises:
        CaseError: the entry is not a valid graph with these parameters.
    """
    template = planned.template
    entry = template.data
    written, names = _written(template), namespace(planned.parameters, Budget(MOST_CASE_STEPS))
    files = CaseFiles(template.about.location.path.parent)
    for name, node in written["let"].items():
        names[name] = evaluated(node, names)
    rejected = "rejected" in (entry.get("expect") or {})
    data: _Data = {}
    errors = CaseErrors()
    relation: Relation | None = None
    with errors.collected():
        _require_one_origin(entry)
    with errors.collected():
        relation = read_relation(evaluated(written["relation"], names))
    # Errors from here on keep the nodes from being read; those above do not.
    independent = len(errors)
    given, held = _by_holder(written, names, errors)
    inputs = _tensors(given, files, data, errors, with_data=not rejected)
    constants = _constants(held, files, errors)
    with errors.collected():
        _unique_names(inputs, constants, written)
    entries: tuple[NodeEntry, ...] = ()
    with errors.collected():
        entries = node_entries(written["nodes"], names)
    if len(errors) > independent:
        errors.raise_any()
    known = {name: constant.tensor for name, constant in constants.items()}
    reader = NodeReader(entries, inputs, known, files, rejected=rejected)
    with errors.collected():
        reader.read_all()
    outputs = _outputs(evaluated(written["outputs"], names), reader, errors)
    errors.raise_causes(UnreadSourceError)
    graph = _graph(inputs, outputs, constants, [entry.name for entry in entries], reader)
    if wired and not rejected:
        _require_wiring(graph, relation)
    if template.challenge is not None and not template.keeps_data:
        data = challenged_data(data, template.challenge)
    desc = {**inputs, **graph.outputs}
    return GraphCase(
        identifier=planned.identifier,
        operator_name=GRAPHS,
        desc=desc,
        data=data,
        expectation=_expectation(entry, evaluated(written["expect"], names), graph, desc, files),
        tags=template.tags,
        about=template.about,
        tolerances=read_tolerances(entry.get("tolerance", {}), graph.outputs),
        files=files.digests,
        disputes=entry.get("disputes"),
        graph=graph,
        relation=relation,
    )


def read_relation(written: Any) -> Relation | None:
    """Return the relation that an entry names; None if `written` is None.

    Raises:
        CaseError: there is no such relation.
    """
    if written is None or written in list(Relation):
        return None if written is None else Relation(written)
    raise CaseError(("relation",), f"{written!r} is not a relation", name_hint(written, Relation))


@lru_cache(maxsize=64)  # Cases of one template follow each other.
def _written(template: CaseTemplate) -> Mapping[str, Any]:
    """Return the parts of an entry that may contain expressions, prepared for `evaluated`."""
    entry = template.data
    read = prepared if "matrix" in entry else lambda value, where: Fixed(value)

    def parts(key: str) -> Mapping[str, Any]:
        return {name: read(value, (key, name)) for name, value in entry.get(key, {}).items()}

    nodes = {}
    for name, node in entry["nodes"].items():
        where = ("nodes", name)
        # A repeated node may have expressions, even without a matrix: they may name its Index.
        read_node = prepared if "matrix" in entry or "repeat" in node else read
        nodes[name] = {
            key: read_node(value, (*where, key)) for key, value in node.items() if key != "desc"
        }
        nodes[name]["desc"] = {
            field: read_node(value, (*where, "desc", field))
            for field, value in node.get("desc", {}).items()
        }
    return {
        "let": parts("let"),
        "inputs": parts("inputs"),
        "constants": parts("constants"),
        "nodes": nodes,
        "outputs": read(entry["outputs"], ("outputs",)),
        "expect": read(entry.get("expect"), ("expect",)),
        "relation": read(entry.get("relation"), ("relation",)),
    }


def _by_holder(
    written: Mapping[str, Any], names: Namespace, errors: CaseErrors
) -> tuple[_Entries, _Entries]:
    """Return the entries of the graph's inputs, and those of its constants.

    `held: constant` makes an input a constant, and `held: owned` gives it the flag OWNED_BY_DML.
    """
    given: _Entries = {}
    constants: _Entries = {}
    for name, node in written["inputs"].items():
        where = ("inputs", name)
        with errors.collected():
            entry = evaluated(node, names)
            holder = entry.get("held", "input") if isinstance(entry, Mapping) else "input"
            if holder not in _HOLDERS:
                message = f"{holder!r} does not hold data"
                raise CaseError((*where, "held"), message, f"one of {', '.join(_HOLDERS)}")
            if isinstance(entry, Mapping):
                entry = {key: value for key, value in entry.items() if key != "held"}
            if holder == "owned":
                flags = entry.get("Flags", ())
                flags = [flags] if isinstance(flags, str) else flags
                require_list(flags, (*where, "Flags"))
                entry["Flags"] = [*flags, "OWNED_BY_DML"]
            (constants if holder == "constant" else given)[where] = entry
    for name, node in written["constants"].items():
        with errors.collected():
            constants["constants", name] = evaluated(node, names)
    return given, constants


_HOLDERS: Final = ("input", "owned", "constant")


def _tensors(
    entries: _Entries, files: CaseFiles, data: _Data, errors: CaseErrors, *, with_data: bool
) -> dict[str, TensorDesc]:
    tensors = {}
    for where, entry in entries.items():
        _, name = where
        with errors.collected():
            tensors[name] = read_tensor(entry, name, data, files, where)
            if with_data and name not in data:
                raise CaseError(where, f"`{name}` has no data", "give it `values` or a `fill`")
    return tensors


def _constants(entries: _Entries, files: CaseFiles, errors: CaseErrors) -> dict[str, Constant]:
    data: _Data = {}
    tensors = _tensors(entries, files, data, errors, with_data=True)
    constants = {}
    for name, tensor in tensors.items():
        if name not in data:
            continue
        part = data[name]
        if isinstance(part, Fill):
            part = fill(part.name, tensor.Sizes, tensor.DataType, part.arguments)
        constants[name] = Constant(name, tensor, as_stored(part, tensor.FittingStrides))
    return constants


def _unique_names(
    inputs: Mapping[str, Any], constants: Mapping[str, Any], written: Mapping[str, Any]
) -> None:
    errors = CaseErrors()
    taken: dict[str, str] = {field.name: "a fact of graphs" for field in GRAPH_FACTS}
    outputs = written["outputs"]
    output_names = outputs.value if isinstance(outputs, Fixed) else outputs
    groups = (
        ("inputs", "a graph input", inputs),
        ("constants", "a constant", constants),
        ("nodes", "a node", written["nodes"]),
    )
    for key, kind, names in groups:
        for name in names:
            if name in taken:
                hint = "give each its own name"
                errors.add(CaseError((key, name), f"{name} is {taken[name]} already", hint))
            taken.setdefault(name, kind)
    for name in output_names if isinstance(output_names, Mapping) else ():
        if name in inputs or name in {field.name for field in GRAPH_FACTS}:
            hint = "inputs and outputs of a graph have unique names"
            errors.add(CaseError(("outputs", name), f"{name} is {taken[name]} already", hint))
    errors.raise_any()


def _outputs(
    written: Any, reader: NodeReader, errors: CaseErrors
) -> dict[str, tuple[TensorDesc, list[Source]]]:
    outputs = {}
    for name, value in written.items():
        where = ("outputs", name)
        with errors.collected():
            texts = value if isinstance(value, list) else [value]
            sources = [reader.source(text, where) for text in texts]
            if not sources:
                raise CaseError(where, f"nothing says what feeds {name}", "name a node")
            for source in sources:
                if isinstance(source, str):
                    message = f"{source} is a graph input, and no edge leads from it to an output"
                    raise CaseError(where, message, "put an ELEMENT_WISE_IDENTITY node in between")
            outputs[name] = (reader.tensor(sources[0], where), sources)
    return outputs


def _graph(
    inputs: Mapping[str, TensorDesc],
    outputs: Mapping[str, tuple[TensorDesc, list[Source]]],
    constants: Mapping[str, Constant],
    order: list[str],
    reader: NodeReader,
) -> Graph:
    input_edges, links = [], []
    for (node, tensor), sources in reader.edges.items():
        for source in sources:
            if isinstance(source, str):
                input_edges.append(InputEdge(source, node, tensor))
            else:
                links.append(IntermediateEdge(*source, node, tensor))
    return Graph(
        inputs=inputs,
        outputs={name: tensor for name, (tensor, _) in outputs.items()},
        nodes=(*constants.values(), *(reader.nodes[name] for name in order)),
        input_edges=tuple(input_edges),
        intermediate_edges=tuple(links),
        output_edges=tuple(
            OutputEdge(*source, name)
            for name, (_, sources) in outputs.items()
            for source in sources
            if isinstance(source, tuple)
        ),
    )


def _require_one_origin(entry: Mapping[str, Any]) -> None:
    if "origin" in entry and "recorded" in entry:
        message = "`origin` and `recorded` both say where the expected values come from"
        raise CaseError(("origin",), message, "keep one of them")


def _require_wiring(graph: Graph, relation: Relation | None) -> None:
    errors = CaseErrors()
    for problem in wiring_problems(graph):
        errors.add(CaseError(problem_location(problem), problem.message, problem.hint))
    reason = None if relation is None else lacking(graph, relation)
    if reason is not None:
        message = f"the graph cannot be {relation}: {reason}"
        errors.add(CaseError(("relation",), message))
    errors.raise_any()


def _expectation(
    entry: Mapping[str, Any],
    expect: Mapping[str, Any] | None,
    graph: Graph,
    desc: Desc,
    files: CaseFiles,
) -> ExpectedOutputs | ExpectedRejection | None:
    if expect is not None and "rejected" in expect:
        _known_constraint(expect.get("constraint"), graph)
    elif expect is not None:
        errors = CaseErrors()
        for name in expect.keys() - graph.outputs.keys():
            hint = name_hint(name, graph.outputs, f"outputs: {', '.join(graph.outputs)}")
            errors.add(CaseError(("expect", name), f"the graph has no output {name}", hint))
        errors.raise_any()
    return read_expectation(graph_entry((), graph.outputs), entry, expect, desc, files)


def _known_constraint(constraint: Any, graph: Graph) -> None:
    if constraint is None:
        return
    known = {*WIRING_RULES}
    for node in graph.operator_nodes:
        known |= constraint_names(node.operator)
    if not isinstance(constraint, str) or constraint not in known:
        hint = name_hint(constraint, sorted(known))
        message = f"neither graphs nor their nodes have a constraint {constraint!r}"
        raise CaseError(("expect", "constraint"), message, hint)


def operators_in(planned: PlannedCase) -> frozenset[str]:
    """Return the names of the operators in a planned graph, without building it.

    The case of an operator has none. Unknown names, and expressions that cannot be evaluated, are
    left out.
    """
    let, operators = _written_operators(planned.template)
    if not isinstance(operators, frozenset):
        return frozenset(_operator_names(let, operators, namespace(planned.parameters)))
    return operators


@lru_cache(maxsize=256)
def _written_operators(
    template: CaseTemplate,
) -> tuple[Mapping[str, Any], frozenset[str] | Sequence[Any]]:
    """Return the `let` of an entry and the operators of its nodes, not yet evaluated.

    If no operator is an expression, `let` is empty and the operators are a set of names.
    """
    entry = template.data
    nodes = entry.get("nodes", {}).items()  # The entry of an operator's case has none.
    written = [
        prepared(node["operator"], ("nodes", name, "operator"))
        if "matrix" in entry or "repeat" in node
        else Fixed(node["operator"])
        for name, node in nodes
    ]
    if all(type(each) is Fixed for each in written):
        return {}, frozenset(_operator_names({}, written, namespace({})))
    let = entry.get("let", {}).items()
    read = prepared if "matrix" in entry else lambda value, where: Fixed(value)
    return {name: read(value, ("let", name)) for name, value in let}, written


def _operator_names(
    let: Mapping[str, Any], operators: Sequence[Any], names: Namespace
) -> Iterator[str]:
    from dmlconf.catalogue.loader import UnknownOperatorError, operator_name

    for name, node in let.items():
        with suppress(CaseError):
            names[name] = evaluated(node, names)
    for operator in operators:
        try:
            yield operator_name(str(evaluated(operator, names)))
        except (UnknownOperatorError, CaseError):
            continue
