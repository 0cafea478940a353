"""What a case is, before it is built (entry and parameters) and after (desc, data, expectation)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from dmlconf.cases.errors import CaseError, desc_location
from dmlconf.cases.tolerance import Tolerance
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.constraints import violations
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.levels import LevelNeed, highest_level, level_needs, required_level
from dmlconf.catalogue.model import Entry, FeatureLevel, FieldKind, Operator
from dmlconf.catalogue.precision import PrecisionRule
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.fills import fill
from dmlconf.tensors.layout import as_stored
from dmlconf.tensors.sample import Sample

if TYPE_CHECKING:
    from dmlconf.graphs.model import Graph, GraphNode
    from dmlconf.graphs.relations import Relation

__all__ = [
    "DESCRIPTORS_VOLATILE_TAG",
    "DOCUMENTED_TAG",
    "EXECUTION_TAGS",
    "HALF_PRECISION_TAG",
    "INVALID_TAG",
    "NO_METACOMMANDS_TAG",
    "REJECTION_HINT",
    "About",
    "Case",
    "CaseTemplate",
    "ExpectedOutputs",
    "ExpectedRejection",
    "Fill",
    "Location",
    "PlannedCase",
    "Provenance",
]


DOCUMENTED_TAG: Final = "documented"
"""The tag of cases from a documentation page."""

HALF_PRECISION_TAG: Final = "half-precision"
"""The tag of cases that are compiled, and judged, with ALLOW_HALF_PRECISION_COMPUTATION."""

NO_METACOMMANDS_TAG: Final = "no-metacommands"
"""The tag of cases that are compiled with DISABLE_META_COMMANDS."""

DESCRIPTORS_VOLATILE_TAG: Final = "descriptors-volatile"
"""The tag of cases that are compiled with DESCRIPTORS_VOLATILE."""

EXECUTION_TAGS: Final = (HALF_PRECISION_TAG, NO_METACOMMANDS_TAG, DESCRIPTORS_VOLATILE_TAG)
"""The tags that change how a case is compiled."""

INVALID_TAG: Final = "invalid"
"""The tag of the suite's cases that must be refused."""


class Provenance(StrEnum):
    """Where expected values come from.

    In order: a page, another source that the case states, a real DirectML, the reference, and a
    relation.
    """

    DOCUMENTED = "documented"
    STATED = "stated"
    RECORDED = "recorded"
    REFERENCE = "reference"
    RELATION = "relation"


@dataclass(frozen=True, slots=True)
class Location:
    """Where a case is: a file, and a line from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Fill:
    """Tensor data from a generator of `dmlconf.tensors.fills`."""

    name: str
    arguments: Mapping[str, Any]


class _Derived(dict[str, Any]):
    """Cached values that follow from a case's desc, entry or parameters; pickling omits them."""

    def __reduce__(self) -> tuple[type[_Derived], tuple[()]]:
        return _Derived, ()


class _Inputs(dict[str, Array]):
    """The cached result of `Case.inputs`."""


REJECTION_HINT: Final = "if that is what the case is for, write `expect: {rejected: E_INVALIDARG}`"

_ZEROS = Fill("constant", {"value": 0})


@dataclass(frozen=True, slots=True)
class ExpectedOutputs:
    """The expected outputs of a case.

    Attributes:
        outputs: the expected arrays by output, such as `OutputTensors[0]`, shaped like their Sizes.
        others: the provenance of outputs that the case does not state, by name.
        samples: the known elements of outputs that are known in part, by name.
        computed: names of the outputs that the reference has just computed. Only other outputs may
            contradict the reference.
        right: what the reference computes, by output; None if unknown.
    """

    outputs: Mapping[str, Array]
    provenance: Provenance
    others: Mapping[str, Provenance] = field(default_factory=dict)
    samples: Mapping[str, Sample] = field(default_factory=dict)
    computed: frozenset[str] = frozenset()
    right: Mapping[str, Array] | None = None

    def provenance_of(self, output: str) -> Provenance:
        """Return where the expected values of one output come from."""
        return self.others.get(output, self.provenance)


@dataclass(frozen=True, slots=True)
class ExpectedRejection:
    """A refusal that a case states.

    Attributes:
        hresult: name of the HRESULT, such as `E_INVALIDARG`.
        constraint: name of the constraint that is broken, or None if the case does not name it.
    """

    hresult: str
    constraint: str | None
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class About:
    """What a case says about itself, for people.

    Attributes:
        page: the name of the documentation page, without its extension.
        example: the number or name of the page's example, or None.
        recorded: the real DirectML that the expectation comes from, or None.
        documented: what the page says wrongly, and why that is wrong; or None.
        origin: another source of the expectation, or None.
    """

    location: Location
    page: str
    example: str | None = None
    note: str | None = None
    recorded: str | None = None
    documented: Any = None
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One use of an operator, with its input data and the expected result.

    `GraphCase`, a graph of operators, is a subclass with the same properties.

    Attributes:
        identifier: stable name, such as `gather/documented/example-1-1d-remapping`.
        data: the inputs' data by tensor, such as `InputTensors[0]` for the first of an array.
        expectation: what the case itself expects; None if it states nothing.
        in_place: for each output that shares the buffer of an input, the name of that input.
        tolerances: limits by output that replace the operator's rule, or apply together with it.
        files: SHA-256 in hexadecimal of the case's data files, by name.
        disputes: `reference` if the case says that its expectation is right and the reference
            wrong; else None.
    """

    identifier: str
    operator_name: str
    desc: Desc
    data: Mapping[str, Array | Fill]
    expectation: ExpectedOutputs | ExpectedRejection | None
    tags: tuple[str, ...]
    about: About
    in_place: Mapping[str, str] = field(default_factory=dict)
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    disputes: str | None = None
    source: str | None = field(default=None, init=False, repr=False, compare=False)
    """A digest of identifier, entry and parameters, without data files; None if unknown, as after
    a change of the case."""
    _derived: _Derived = field(default_factory=_Derived, init=False, repr=False, compare=False)

    most_variations: ClassVar[int] = 3
    """The most sets of inputs with which the case runs under circumstances, its own included."""

    is_compiled_as_graph: ClassVar[bool] = False
    """Whether the case must be compiled with CompileGraph."""

    forms: ClassVar[tuple[Relation, ...]] = ()
    """Other forms in which the case can run and must give the same outputs."""

    @property
    def entry(self) -> Entry:
        """What the catalogue says of the operator; a graph has an entry of its own."""
        return self.operator

    @property
    def operator(self) -> Operator:
        """The operator, from the catalogue.

        Raises:
            UnknownOperatorError: the case is a graph.
        """
        return catalogue.operator(self.operator_name)

    @property
    def graph(self) -> Graph:
        """The case as a graph; an operator is a graph of one node without a name."""
        from dmlconf.graphs.model import Node, graph_of

        graph: Graph = self.once("graph", lambda: graph_of(Node("", self.operator_name, self.desc)))
        return graph

    @property
    def nodes(self) -> tuple[GraphNode, ...]:
        """The nodes of a graph, which have names; none for an operator."""
        return ()

    @property
    def relation(self) -> Relation | None:
        """The other form that must give the same outputs; None for an operator."""
        return None

    @property
    def content(self) -> Desc:
        """The description of what is compiled: the desc."""
        return self.desc

    @property
    def described(self) -> Desc:
        """The fields that conditions over the case may name."""
        return self.desc

    @property
    def required_level(self) -> FeatureLevel | None:
        """Lowest feature level that must support the desc; None if no table lists its tensors."""
        return required_level(self.operator, self.desc)

    @property
    def level_needs(self) -> tuple[LevelNeed, ...]:
        """The feature levels that the parts of the desc need, the operator's first."""
        needs: tuple[LevelNeed, ...] = self.once(
            "levels", lambda: level_needs(self.operator, self.desc)
        )
        return needs

    @property
    def lowest_level(self) -> FeatureLevel:
        """Lowest feature level that has all parts of the desc, also if `required_level` is None."""
        level: FeatureLevel = self.once("lowest_level", lambda: highest_level(self.level_needs))
        return level

    @property
    def data_types(self) -> frozenset[DataType]:
        """The data types of its tensors."""
        types: frozenset[DataType] = self.once("data_types", self._data_types)
        return types

    def _data_types(self) -> frozenset[DataType]:
        return frozenset(t.DataType for _, _, t in tensors_of(self.entry, self.desc))

    def rule(self, output: str) -> PrecisionRule:
        """Return an output's rule: its tolerance's if that has a reason, else the operator's."""
        tolerance = self.tolerances.get(output)
        if tolerance is not None and tolerance.reason is not None:
            return tolerance.rule
        return self._own_rule(output)

    def _own_rule(self, output: str) -> PrecisionRule:
        rule: PrecisionRule = self.once(f"rule of {output}", lambda: self._operator_rule(output))
        return rule

    def _operator_rule(self, output: str) -> PrecisionRule:
        field = TensorRef.of(output).field
        data_type = self.outputs()[output].DataType
        names = self.once("names", lambda: self.operator.names(self.desc))
        return self.operator.rule(field, data_type, names)

    def violations(self) -> tuple[str, ...]:
        """Return the names of the enforced constraints that the desc breaks."""
        broken: tuple[str, ...] = self.once(
            "violations", lambda: violations(self.operator, self.desc)
        )
        return broken

    def documented_violations(self) -> tuple[str, ...]:
        """Return the names of the documented constraints that the desc breaks, enforced or not."""
        return violations(self.operator, self.desc, documented=True)

    def with_tensors(self, change: Callable[[str, TensorDesc], TensorDesc]) -> Self:
        """Return the case with changed tensors; a graph is returned unchanged.

        Args:
            change: takes a tensor's name, such as `InputTensors[0]`, and its desc, and returns the
                new desc.
        """
        desc = dict(self.desc)
        for each in self.entry.of_kind(FieldKind.INPUT, FieldKind.OUTPUT):
            value = desc.get(each.name)
            if isinstance(value, TensorDesc):
                desc[each.name] = change(each.name, value)
            elif value is not None:
                tensors = (
                    change(str(TensorRef(each.name, i)), tensor) for i, tensor in enumerate(value)
                )
                desc[each.name] = tuple(tensors)
        return replace(self, desc=desc)

    def constraint_error(self) -> CaseError:
        """Return the error of a case that breaks a constraint and expects no rejection."""
        from dmlconf.catalogue.explanations import explanations  # Only an error needs it.

        errors = []
        for each in explanations(self.operator, self.desc):
            breaks = f"{self.identifier} breaks {each.constraint}, but expects no rejection"
            message = f"{breaks}: {each.text}"
            errors.append(CaseError(desc_location(each.field), message, REJECTION_HINT))
        first, *others = errors
        return CaseError(first.where, first.message, first.hint, others)

    def narrower_rule(self, output: str) -> PrecisionRule | None:
        """Return the rule of a tolerance that applies in addition to `rule`, or None."""
        tolerance = self.tolerances.get(output)
        return tolerance.rule if tolerance is not None and tolerance.reason is None else None

    def inputs(self) -> dict[str, Array]:
        """Return the inputs' arrays by tensor, shaped like their Sizes.

        Data may be missing if the case expects a rejection; its elements are then 0. Elements that
        share memory, as along a stride of 0, are equal.
        """
        if isinstance(self.data, _Inputs):
            return dict(self.data)
        return {name: self._input(name, tensor) for name, tensor in self._input_tensors().items()}

    def input_names(self) -> tuple[str, ...]:
        """Return the names of the present inputs in order."""
        return tuple(self._input_tensors())

    def input(self, name: str) -> Array:
        """Return the array of one input, as `inputs` has it."""
        if isinstance(self.data, _Inputs):
            return self.data[name]
        return self._input(name, self._input_tensors()[name])

    def with_inputs(self) -> Self:
        """Return the case with its inputs as arrays, so that `inputs` need not make them again."""
        case = self._with_arrays(self.inputs())
        object.__setattr__(case, "source", self.source)  # The data is the same, too.
        return case

    def with_data(self, arrays: Mapping[str, Array]) -> Self:
        """Return the case with these arrays as its inputs, by tensor, shaped like their Sizes."""
        tensors = self._input_tensors().items()
        return self._with_arrays({n: as_stored(arrays[n], t.FittingStrides) for n, t in tensors})

    def _with_arrays(self, inputs: Mapping[str, Array]) -> Self:
        case = replace(self, data=_Inputs(inputs))
        object.__setattr__(case, "_derived", self._derived)  # The desc is the same.
        return case

    def _input(self, name: str, tensor: TensorDesc) -> Array:
        data = self.data.get(name, _ZEROS)
        if isinstance(data, Fill):
            data = fill(data.name, tensor.Sizes, tensor.DataType, data.arguments)
        return as_stored(data, tensor.FittingStrides)

    def outputs(self) -> Mapping[str, TensorDesc]:
        """Return the descs of the outputs by tensor."""
        outputs: Mapping[str, TensorDesc] = self.once(
            "outputs", lambda: self._tensors(FieldKind.OUTPUT)
        )
        return outputs

    def _input_tensors(self) -> Mapping[str, TensorDesc]:
        inputs: Mapping[str, TensorDesc] = self.once(
            "inputs", lambda: self._tensors(FieldKind.INPUT)
        )
        return inputs

    def _tensors(self, kind: FieldKind) -> Mapping[str, TensorDesc]:
        return {name: tensor for name, _, tensor in tensors_of(self.entry, self.desc, kind)}

    def recall(self, derived: Mapping[str, Any]) -> None:
        """Take values that were derived earlier from a case of the same `source`, by name."""
        self._derived.update(derived)

    def recalled(self, name: str) -> Any:
        """Return a value that was derived earlier; None if there is none or `source` is None."""
        return self._derived.get(name) if self.source is not None else None

    def once(self, name: str, derive: Callable[[], Any]) -> Any:
        """Return a value derived from the desc, computed once."""
        if name not in self._derived:
            self._derived[name] = derive()
        return self._derived[name]


@dataclass(frozen=True, slots=True, eq=False)
class CaseTemplate:
    """One entry of a case file: a case, or a matrix of cases.

    Attributes:
        identifier: the identifier of its cases, without their parameters.
        index: the index of its entry among the file's cases, from 0.
        data: the entry in the file, which fits the schema.
        tags: the tags for selection; the first is the file's name without extension: `matrix`.
        challenge: the number that changes the seeds and shifts of generated data, or None.
        shared: whether the entry is in a file that several operators may share.
    """

    identifier: str
    operator_name: str
    index: int
    data: Mapping[str, Any]
    tags: tuple[str, ...]
    about: About
    challenge: int | None = None
    shared: bool = False

    @property
    def is_graph(self) -> bool:
        """Whether its cases are graphs, whose entries have nodes instead of a desc."""
        return "nodes" in self.data

    @property
    def has_relation(self) -> bool:
        """Whether its cases are graphs that must give the same outputs in another form."""
        return "relation" in self.data

    @property
    def output_names(self) -> tuple[str, ...]:
        """The outputs that the case may state: the operator's fields, or the graph's outputs."""
        if "outputs" in self.data:
            return tuple(self.data["outputs"])
        fields = catalogue.entry_of(self.operator_name).of_kind(FieldKind.OUTPUT)
        return tuple(field.name for field in fields)

    @property
    def keeps_data(self) -> bool:
        """Whether a challenge keeps the data: a page gives it, or the case states its outputs."""
        expect = self.data.get("expect") or {}
        return DOCUMENTED_TAG in self.tags or ("expect" in self.data and "rejected" not in expect)


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case that is not built yet: its template and its row of the matrix.

    Attributes:
        parameters: the values of the matrix's parameters; empty if there is no matrix.
    """

    identifier: str
    template: CaseTemplate
    parameters: Mapping[str, Any]
