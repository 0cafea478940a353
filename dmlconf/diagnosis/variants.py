"""Variants: the same case under one changed circumstance, and the culprit that they reveal.

The culprit is the circumstance whose change makes a failing case pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dmlconf.backends import registry
from dmlconf.backends.options import BOTH
from dmlconf.backends.registry import BackendName
from dmlconf.cases.data_facts import DATA_WORDS, data_words
from dmlconf.cases.graph_case import with_graph
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.diagnosis.reduction.data import plain_values
from dmlconf.graphs.relations import Relation, lacking, owned_otherwise

__all__ = ["OPTIONS", "Culprit", "Variant", "option_variants", "variants_of"]

_OWNED: Final = "OWNED_BY_DML"

OPTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "metacommands": ("metacommands", "the driver's metacommand"),
    "half": ("half", "FLOAT16 for intermediate results"),
    "compile": ("compilation", "the compilation"),
}
"""Options of backends that are circumstances: the culprit's name, and what is to blame."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A case under one changed circumstance.

    Attributes:
        circumstance: the name of what changed, such as `metacommands`.
        change: what changed, such as `metacommands=off`.
        blame: what is to blame if the variant passes.
        case: the case to run.
        backend: what it runs on; None for the backend under test.
        tells: whether a pass shows what is to blame. With FLOAT16 for intermediate results more
            is permitted, a wrong computation may not show with other data, and another backend may
            differ in anything.
        form: the form in which a graph runs; None for the graph itself.
    """

    circumstance: str
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
        circumstance: its name, such as `metacommands`.
        sentence: what is to blame, and the evidence.
    """

    circumstance: str
    sentence: str


def variants_of(case: Case, backend: BackendName) -> Iterator[Variant]:
    """Yield the variants of a case, those of the backend's options first.

    Args:
        case: the case, whose data are arrays.
        backend: what it fails on.
    """
    options = option_variants(case, backend)
    if case.forms:
        # A backend compiles a graph as a graph, however it compiles operators.
        yield from (variant for variant in options if variant.circumstance != "compilation")
        yield from _of_graph(case)
        return
    yield from options
    yield from _of_layout(case)
    yield from _of_ownership(case)
    if case.in_place:
        yield Variant(
            "in-place",
            "outputs in separate buffers",
            "writing an output in place of an input",
            replace(case, in_place={}),
        )
    if not isinstance(case.expectation, ExpectedRejection):
        yield from _of_data(case)


def option_variants(case: Case, backend: BackendName) -> Iterator[Variant]:
    """Yield the case under the backend's other options."""
    for option, (circumstance, blame) in OPTIONS.items():
        parts = [part for part in backend.options.split(",") if part]
        own = next((part for part in parts if part.startswith(f"{option}=")), None)
        others = [part for part in parts if part != own]
        both = BackendName(backend.name, ",".join([*others, f"{option}={BOTH}"]))
        labels = registry.variants(both)
        present = own if own in labels else next(iter(labels), None)
        for label, other in labels.items():
            if label != present:
                tells = label != "half=on"
                yield Variant(circumstance, label, f"{blame} ({present})", case, other, tells)


_FORMS: Final[Mapping[Relation, tuple[str, str, str]]] = {
    Relation.UNFUSED: ("compilation", "its nodes one by one", "the graph compiler"),
    Relation.EXPORTED: (
        "fusion",
        "every intermediate as an output",
        "the fusion of nodes over an intermediate",
    ),
    Relation.ORDER: ("order", "its nodes in the opposite order", "the order of the nodes"),
}
"""Forms of a graph that must give the same outputs: the culprit, the change, what is to blame."""


def _of_graph(case: Case) -> Iterator[Variant]:
    """Yield a graph in other forms, and owned inputs for its constants or inputs not owned."""
    if case.relation is not None or isinstance(case.expectation, ExpectedRejection):
        return
    for form, (circumstance, change, blame) in _FORMS.items():
        if form is Relation.UNFUSED or lacking(case.graph, form) is None:
            yield Variant(circumstance, change, blame, case, form=form)
    graph = owned_otherwise(case.graph)
    if graph.content() == case.graph.content():
        return
    data = {**case.data, **{constant.name: constant.data for constant in case.graph.constants}}
    constants = bool(case.graph.constants)
    yield Variant(
        "ownership",
        "owned inputs for constants" if constants else "no owned inputs",
        "giving data as constants" if constants else "DML_TENSOR_FLAG_OWNED_BY_DML",
        with_graph(case, graph, data=data),
    )


def _changed(case: Case, **changes: Any) -> Case:
    """Return the case with these changes to every tensor."""
    return case.with_tensors(lambda name, tensor: replace(tensor, **changes))


def _tensors(case: Case) -> list[TensorDesc]:
    values = [case.desc.get(field.name) for field in case.entry.fields if field.is_tensor]
    nested = [value if isinstance(value, tuple) else (value,) for value in values]
    return [tensor for tensors in nested for tensor in tensors if tensor is not None]


def _of_layout(case: Case) -> Iterator[Variant]:
    strided = any(not tensor.Packed for tensor in _tensors(case))
    if strided or any(tensor.Strides is not None for tensor in _tensors(case)):
        packed = _changed(case, Strides=None, DeclaredTensorSizeInBytes=None)
        blame = "a layout that is not packed" if strided else "giving Strides for a packed tensor"
        change = "packed tensors" if strided else "no Strides"
        yield Variant("layout", change, blame, packed)


def _of_ownership(case: Case) -> Iterator[Variant]:
    owned = any(_OWNED in tensor.Flags for tensor in _tensors(case))
    if owned:
        blame = "DML_TENSOR_FLAG_OWNED_BY_DML"
        yield Variant("ownership", "no owned tensors", blame, _changed(case, Flags=()))
        return
    inputs = case.input_names()
    if len(inputs) < 2 or case.in_place:
        return
    desc: dict[str, Any] = dict(case.desc)
    for name in inputs[1:]:
        tensor = TensorRef.of(name)
        if tensor.index is None:
            before = tensor.read(desc)
            desc[name] = replace(before, Flags=(*before.Flags, _OWNED))
    if desc != dict(case.desc):
        blame = "binding inputs at execution"
        change = "all inputs except the first owned by DirectML"
        yield Variant("ownership", change, blame, replace(case, desc=desc))


def _of_data(case: Case) -> Iterator[Variant]:
    for word in data_words(case):
        data = plain_values(case, word)
        said = DATA_WORDS[word]
        yield Variant("data", f"no {word} in the data", f"{said} in an input", _data(case, data))
    data = plain_values(case)
    changed = _data(case, data)
    yield Variant("data", "other data of the same sizes", "the data", changed, tells=False)


def _data(case: Case, data: Mapping[str, Any]) -> Case:
    return replace(case, data=dict(data))
