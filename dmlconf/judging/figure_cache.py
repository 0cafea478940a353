"""A cache of the figures of right outputs, and of facts about cases.

The key of figures is a digest of all that they depend on, such as the case, the actual values and
dmlconf's sources. Figures of failing verdicts are not cached.

There are three kinds of record:

- `cases`: values that follow from a case's entry and its data files alone, such as its facts, and
  whether its rules have judged an element
- `figures`: the figures of a comparison
- `judged`: which record of `figures` belongs to outputs, by a digest of the case's entry, its data
  files, the outputs and the source of expected values

Keys are no secret, so whoever can write to the user's cache folder can make a wrong output pass
(docs/security.md). Certificates are judged without the cache.
"""

from __future__ import annotations

import json
import platform
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache, lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.facts import facts_of
from dmlconf.cases.model import Case, ExpectedOutputs, Provenance
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.catalogue.precision import RuleKind
from dmlconf.documents.store import Entries
from dmlconf.resources import sources_digest
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.sample import Sample
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.record import record_of, value_of
from dmlconf.workers.memory import sizes_of

__all__ = ["JUDGING_SOURCES", "CachedRecord", "FigureCache", "KnownJudgement"]

_FORM: Final = "3"
"""Version of the format of the store's entries."""

JUDGING_SOURCES: Final = (
    "arithmetic.py",
    "backends/protocol.py",
    "backends/recording",
    "cases",
    "catalogue",
    "documents",
    "expressions.py",
    "graphs",
    "judging",
    "limits.py",
    "permitted",
    "precision",
    "reference",
    "resources.py",
    "tensors",
    "verdicts",
    "workers/control_groups.py",
    "workers/memory.py",
)
"""The sources on which figures depend: all that `judging.judge` imports."""

_EXPECTATION_SOURCES: Final = (
    "backends/numpy",
    "backends/registry.py",
    "backends/subject.py",
    "engine/against.py",
    "engine/session.py",
    "workers",
)
"""Further sources, on which expected outcomes depend."""

_MOST_GROUPS: Final = 8
"""The most groups in memory at a time. A group is the records of an operator's cases in a file."""

_MOST_OVERFLOWS: Final = 2
"""Once a group was too large for the store this often, the run keeps no more of its records."""

_KEY_DIGITS: Final = 32
"""The hexadecimal digits of a key: with 128 bits, no two keys are equal by chance."""

_BY_INPUTS: Final = (RuleKind.INTERVAL, RuleKind.ONE_OF)
"""The rules whose permitted values follow from the inputs alone."""

_CASES, _FIGURES, _JUDGED = "cases", "figures", "judged"
"""The parts of a group."""

_Group = dict[str, dict[str, Any]]
"""The records of an operator's cases in one file, by part and then by key."""


class CachedRecord(NamedTuple):
    """A new record, for the process that writes to the cache.

    Attributes:
        group: the group of cases, such as `gather/gather/boundary`: one entry of the store.
        part: `cases`, `figures` or `judged`.
        record: JSON values.
    """

    group: str
    part: str
    key: str
    record: Any


class KnownJudgement(NamedTuple):
    """The judgement on right outputs; `unchecked` names outputs without expected values."""

    figures: Mapping[str, Figures]
    provenance: Provenance
    unchecked: tuple[str, ...]


@dataclass(slots=True)
class FigureCache:
    """The figures of comparisons, in a store.

    Attributes:
        unsaved: new records that are not in the store.
    """

    store: Entries
    unsaved: list[CachedRecord] = field(default_factory=list)
    _groups: OrderedDict[str, _Group] = field(default_factory=OrderedDict)
    _saved: bool = False
    _overflows: Counter[str] = field(default_factory=Counter)

    def __reduce__(self) -> tuple[Any, ...]:
        return FigureCache, (self.store,)

    def recall(self, case: Case) -> None:
        """Give a case what follows from its entry and data files, if the cache has it."""
        record = self._group(_group_of(case))[_CASES].get(_case_key(case))
        if record is None:
            return
        try:
            level, data_types, sizes, _, facts = record
            derived = {
                "violations": (),
                "lowest_level": _level(level),
                "data_types": _data_types(data_types),
                "sizes": tuple(sizes),
                "facts": dict(facts),
            }
        except (TypeError, ValueError):
            return  # The store's entry is damaged, though its digest is right.
        case.recall(derived)

    def has_judged(self, case: Case) -> bool:
        """Return whether right outputs are known, of which the rules judge some element.

        False where expected values decide what a rule permits: another source may have other ones.
        """
        record = self._group(_group_of(case))[_CASES].get(_case_key(case))
        if not isinstance(record, list) or record[3:4] != [True]:
            return False
        return all(case.rule(name).kind in _BY_INPUTS for name in case.outputs())

    def judgement_key(
        self, case: Case, outcome: Outputs, digests: Mapping[str, str], source: str, *, half: bool
    ) -> str | None:
        """Return the key of the judgement on outputs; None for a case changed since it was built.

        Args:
            digests: the digests of the elements, by output.
            source: a digest of what gives the expected values that the case does not state.
            half: whether the backend may compute FLOAT16 outputs in FLOAT16 throughout.
        """
        if case.source is None:
            return None
        parts = [_case_key(case), source, str(half)]
        outputs: dict[str, Array | Sample] = {**outcome.samples, **outcome.arrays}
        for name, array in outputs.items():
            parts += name, array.dtype.str, str(array.shape), digests[name]
            if isinstance(array, Sample):
                parts.append(json.dumps(_digest_of(array)))
        return _key_of("\0".join(parts))

    def judgement(self, case: Case, key: str) -> KnownJudgement | None:
        """Return the judgement on right outputs; None if it is not known."""
        record = self._group(_group_of(case))[_JUDGED].get(key)
        if record is None:
            return None
        try:
            figures_key, provenance, outputs, unchecked = record
            figures = self.get(case, figures_key, outputs)
            if figures:
                return KnownJudgement(figures, Provenance(provenance), tuple(unchecked))
        except (TypeError, ValueError):
            pass
        return None

    def add_judgement(self, case: Case, key: str, figures_key: str, known: KnownJudgement) -> None:
        """Add the judgement on right outputs, and the values that follow from the case's entry."""
        group = _group_of(case)
        if self._is_full(group):
            return
        record = [figures_key, known.provenance, list(known.figures), list(known.unchecked)]
        self.unsaved.append(CachedRecord(group, _JUDGED, key, record))
        data_types = ",".join(sorted(case.data_types))
        judged = any(
            each.open is not None and each.open < each.elements for each in known.figures.values()
        )
        derived = [str(case.lowest_level), data_types, sizes_of(case), judged, facts_of(case)]
        self.unsaved.append(CachedRecord(group, _CASES, _case_key(case), derived))

    def key(
        self, case: Case, outcome: Outputs, expected: ExpectedOutputs, *, half: bool
    ) -> str | None:
        """Return the key of a case's figures; None if the case cannot be written as JSON.

        Args:
            half: whether the backend may compute FLOAT16 outputs in FLOAT16 throughout.
        """
        arrays: dict[str, Array | Sample] = {**expected.samples, **expected.outputs}
        stated = [
            (name, _digest_of(array), expected.provenance_of(name), name in expected.computed)
            for name, array in arrays.items()
        ]
        content = [
            half,
            case.identifier,
            case.operator_name,
            case.content,
            case.tolerances,
            case.disputes,
            case.in_place,
            {name: _digest_of(array) for name, array in case.inputs().items()},
            stated,
            {name: _digest_of(array) for name, array in outcome.arrays.items()},
            {name: _digest_of(array) for name, array in outcome.samples.items()},
        ]
        try:
            text = json.dumps(content, default=_plain, separators=(",", ":"))
        except (TypeError, ValueError):
            return None
        return _key_of(text)

    def get(self, case: Case, key: str, outputs: Collection[str]) -> dict[str, Figures] | None:
        """Return the figures by output; None unless all named outputs are known and right."""
        record = self._group(_group_of(case))[_FIGURES].get(key)
        if record is None:
            return None
        try:
            figures = {name: value_of(Figures, record[name]) for name in outputs}
            return figures if all(map(_is_right, figures.values())) else None
        except (TypeError, ValueError, LookupError):
            return None

    def add(self, case: Case, key: str, figures: Mapping[str, Figures]) -> None:
        """Add the figures of a case whose outputs are right, unless its group is full."""
        group = _group_of(case)
        if not self._is_full(group):
            records = {name: record_of(each) for name, each in figures.items()}
            self.unsaved.append(CachedRecord(group, _FIGURES, key, records))

    def take(self) -> tuple[CachedRecord, ...]:
        """Return the records that are not stored yet, and forget them here."""
        unsaved = tuple(self.unsaved)
        self.unsaved.clear()
        return unsaved

    def close(self) -> None:
        """Store new records; if any were stored, remove the oldest beyond the store's limits."""
        self.save()
        if self._saved:
            self.store.prune()

    def save(self) -> None:
        """Store new records."""
        groups: dict[str, _Group] = {}
        for group, part, key, record in self.take():
            if self._is_full(group):
                continue
            groups.setdefault(group, _empty())[part][key] = record
        for group, new in groups.items():
            known = self._group(group)
            # Another run may have stored records since this one read the group.
            stored = _read(self.store, group)
            for part, records in new.items():
                known[part] = {**stored[part], **known[part], **records}
            while not self.store.put(_group_key(group), known):
                known = self._groups[group] = _newest(known)
                self._overflows[group] += 1
        if groups and not self._saved:
            self._saved = True
            self.store.prune()  # A run that was killed did not.

    def _is_full(self, group: str) -> bool:
        return self._overflows[group] >= _MOST_OVERFLOWS

    def _group(self, group: str) -> _Group:
        if group not in self._groups:
            while len(self._groups) >= _MOST_GROUPS:
                self._groups.popitem(last=False)
            self._groups[group] = _read(self.store, group)
        return self._groups[group]


def _is_right(figures: Figures) -> bool:
    return not figures.differing and (figures.margin is None or figures.margin <= 1)


def _group_of(case: Case) -> str:
    return _group_name(case.operator_name, case.about.location.path)


@lru_cache(maxsize=64)
def _group_name(operator: str, path: Path) -> str:
    return f"{operator.lower()}/{path.parent.name}/{path.stem}"


_level: Final = lru_cache(FeatureLevel.parse)


@lru_cache
def _data_types(text: str) -> frozenset[DataType]:
    return frozenset(map(DataType, text.split(",")))


def _case_key(case: Case) -> str:
    """Return a digest of a case's entry and data files; empty if the case was changed later."""
    if case.source is None:
        return ""
    files = "\0".join(f"{name}={digest}" for name, digest in case.files.items())
    return case.source[:_KEY_DIGITS] if not files else _key_of(case.source + files)


def _key_of(text: str) -> str:
    return sha256(_sources_digest() + text.encode()).hexdigest()[:_KEY_DIGITS]


def _group_key(group: str) -> str:
    return sha256(b"figures\0" + _sources_digest() + group.encode()).hexdigest()


def _empty() -> _Group:
    return {_CASES: {}, _FIGURES: {}, _JUDGED: {}}


def _read(store: Entries, group: str) -> _Group:
    entry = store.get(_group_key(group))
    known = entry if isinstance(entry, dict) else {}
    return {part: known.get(part, {}) for part in _empty()}


def _newest(group: _Group) -> _Group:
    return {
        part: dict(islice(records.items(), (len(records) + 1) // 2, None))
        for part, records in group.items()
    }


@cache
def _sources_digest() -> bytes:
    """Return a digest of all that figures depend on besides a case and its values."""
    form = f"{_FORM}\0{np.__version__}\0{platform.machine()}"
    return sources_digest(form, *JUDGING_SOURCES, *_EXPECTATION_SOURCES)


def _digest_of(array: Array | Sample) -> list[Any]:
    """Return the data type and the shape of an array or a sample, and digests of its bits."""
    if isinstance(array, Sample):
        known = [_digest_of(array.indices), _digest_of(array.values)]
        return ["sample", array.dtype.str, array.shape, array.digest, known]
    bits = np.ascontiguousarray(array)
    return [bits.dtype.str, array.shape, sha256(bits.data).hexdigest()]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _digest_of(value)
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *_values(value)]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return [value.dtype.str, value.tobytes().hex()]
    raise TypeError(f"{type(value).__name__} has no stable form")


def _values(value: Any) -> Iterator[Any]:
    return (getattr(value, name) for name in value.__dataclass_fields__)
