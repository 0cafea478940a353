"""Change one factor of a failing case at a time, to find the culprit.

If the case passes with `metacommands=off`, for example, the metacommand is the culprit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dmlconf.backends import registry
from dmlconf.backends.options import BOTH, option_parts
from dmlconf.backends.registry import BackendName
from dmlconf.cases.data_facts import DATA_WORDS, data_words
from dmlconf.cases.graph_case import with_graph
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.desc import OWNED, TensorDesc
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.diagnosis.reduction.data import plain_values
from dmlconf.graphs.relations import Relation, lacking, owned_otherwise

__all__ = ["OPTIONS", "Culprit", "Experiment", "experiments", "option_experiments"]


OPTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "metacommands": ("metacommands", "the driver's metacommand"),
    "half": ("half", "FLOAT16 for intermediate results"),
    "compile": ("compilation", "the compilation"),
}
"""Options of backends that are factors, each with the factor's name and what is to blame."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A failing case with one factor changed.

    Attributes:
        factor: the factor's name, such as `metacommands`.
        change: what changed, such as `metacommands=off`.
        blame: what is to blame if the case passes.
        backend: another backend, or other options; None for those under test.
        tells: whether a pass shows what is to blame, as it does not with other data.
        form: the other form in which a graph runs, if any.
    """

    factor: str
    change: str
    blame: str
    case: Case
    backend: BackendName | None = None
    tells: bool = True
    form: Relation | None = None


@dataclass(frozen=True, slots=True)
class Culprit:
    """What is to blame for a failure.

    Attributes:
        sentence: what the user is told.
    """

    factor: str
    sentence: str


def experiments(case: Case, backend: BackendName) -> Iterator[Experiment]:
    """Yield a case with one factor changed at a time; options of the backend come first.

    For graphs, other forms take the place of the option `compile`.
    """
    options = option_experiments(case, backend)
    if case.forms:
        yield from (each for each in options if each.factor != "compilation")
        yield from _of_graph(case)
        return
    yield from options
    yield from _of_layout(case)
    yield from _of_ownership(case)
    if case.in_place:
        yield Experiment(
            "in-place",
            "outputs in separate buffers",
            "writing an output in place of an input",
            replace(case, in_place={}),
        )
    if not isinstance(case.expectation, ExpectedRejection):
        yield from _of_data(case)


def option_experiments(case: Case, backend: BackendName) -> Iterator[Experiment]:
    """Yield the case with one of the backend's `OPTIONS` changed at a time."""
    for option, (factor, blame) in OPTIONS.items():
        parts = [part for part in option_parts(backend.options) if part]
        own = next((part for part in reversed(parts) if part.startswith(f"{option}=")), None)
        others = [part for part in parts if not part.startswith(f"{option}=")]
        both = BackendName(backend.name, ",".join([*others, f"{option}={BOTH}"]))
        labels = registry.variants(both)
        present = own if own in labels else next(iter(labels), None)
        for label, other in labels.items():
            if label != present:
                tells = label != "half=on"  # It makes the rules permit more.
                yield Experiment(factor, label, f"{blame} ({present})", case, other, tells)


_FORMS: Final[Mapping[Relation, tuple[str, str, str]]] = {
    Relation.UNFUSED: ("compilation", "its nodes one by one", "the graph compiler"),
    Relation.EXPORTED: (
        "fusion",
        "every intermediate as an output",
        "the fusion of nodes over an intermediate",
    ),
    Relation.ORDER: ("order", "its nodes in the opposite order", "the order of the nodes"),
}
"""For some forms of a graph: the factor, the change, and what is to blame."""


def _of_graph(case: Case) -> Iterator[Experiment]:
    """Yield a graph in other forms, and with other ownership, as `owned_otherwise` makes it.

    A graph that has a relation or must be rejected yields nothing.
    """
    if case.relation is not None or isinstance(case.expectation, ExpectedRejection):
        return
    for form, (factor, change, blame) in _FORMS.items():
        if form is Relation.UNFUSED or lacking(case.graph, form) is None:
            yield Experiment(factor, change, blame, case, form=form)
    graph = owned_otherwise(case.graph)
    if graph.content() == case.graph.content():
        return
    held = {constant.name: constant.data for constant in case.graph.constants}
    data = {**case.data, **{name: held[name] for name in held.keys() & graph.inputs.keys()}}
    constants = len(graph.constants) < len(case.graph.constants)
    yield Experiment(
        "ownership",
        "owned inputs for constants" if constants else "no owned inputs",
        "giving data as constants" if constants else "DML_TENSOR_FLAG_OWNED_BY_DML",
        with_graph(case, graph, data=data),
    )


def _changed(case: Case, **changes: Any) -> Case:
    return case.with_tensors(lambda name, tensor: replace(tensor, **changes))


def _tensors(case: Case) -> list[TensorDesc]:
    values = [case.desc.get(field.name) for field in case.entry.fields if field.is_tensor]
    nested = [value if isinstance(value, tuple) else (value,) for value in values]
    return [tensor for tensors in nested for tensor in tensors if tensor is not None]


def _of_layout(case: Case) -> Iterator[Experiment]:
    strided = any(not tensor.Packed for tensor in _tensors(case))
    if strided or any(tensor.Strides is not None for tensor in _tensors(case)):
        packed = _changed(case, Strides=None, DeclaredTensorSizeInBytes=None)
        blame = "a layout that is not packed" if strided else "giving Strides for a packed tensor"
        change = "packed tensors" if strided else "no Strides"
        yield Experiment("layout", change, blame, packed)


def _of_ownership(case: Case) -> Iterator[Experiment]:
    owned = any(tensor.Owned for tensor in _tensors(case))
    if owned:
        blame = "DML_TENSOR_FLAG_OWNED_BY_DML"
        yield Experiment("ownership", "no owned tensors", blame, _changed(case, Flags=()))
        return
    inputs = case.input_names()
    if len(inputs) < 2 or case.in_place:
        return
    desc: dict[str, Any] = dict(case.desc)
    for name in inputs[1:]:
        tensor = TensorRef.of(name)
        if tensor.index is None:
            before = tensor.read(desc)
            desc[name] = replace(before, Flags=(*before.Flags, OWNED))
    if desc != dict(case.desc):
        blame = "binding inputs at execution"
        change = "all inputs except the first owned by DirectML"
        yield Experiment("ownership", change, blame, replace(case, desc=desc))


def _of_data(case: Case) -> Iterator[Experiment]:
    for word in data_words(case):
        data = plain_values(case, word)
        said = DATA_WORDS[word]
        yield Experiment("data", f"no {word} in the data", f"{said} in an input", _data(case, data))
    data = plain_values(case)
    changed = _data(case, data)
    yield Experiment("data", "other data of the same sizes", "the data", changed, tells=False)


def _data(case: Case, data: Mapping[str, Any]) -> Case:
    return replace(case, data=dict(data))
