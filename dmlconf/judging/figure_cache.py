"""A cache of the figures of right outputs, so that equal bits need not be compared again.

What a comparison gives is a function of the case, the expected values, the backend's values and
dmlconf's own sources. A digest of all of these is the key, so nothing is looked up for a case, a
rule or a value that has changed. For example, the second run of 1,000 cases of GEMM on `numpy`
computes no limit of any sum. Only outputs without any fault are cached; an output that fails, or
that looks as if the operator had not run, is compared each time.

The key is no secret: whoever can write to the user's cache folder can make a wrong output pass.
docs/security.md says when to turn the cache off. Certificates are judged without it.
"""

from __future__ import annotations

import json
import platform
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from hashlib import sha256
from typing import Any, Final

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case, ExpectedOutputs
from dmlconf.documents.store import LARGEST_ENTRY, Entries
from dmlconf.resources import sources_digest
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.record import record_of, value_of

__all__ = ["JUDGING_SOURCES", "CachedFigures", "FigureCache"]

_FORM: Final = "1"
"""Version of the format of entries."""

JUDGING_SOURCES: Final = (
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
"""What decides which figures a comparison gives: all that `judging.judge` imports."""

_MOST_GROUPS: Final = 8
"""Groups of cases that are in memory at once; a plan has the cases of a group side by side."""

_KEY_DIGITS: Final = 32

_Group = dict[str, dict[str, Any]]
"""Records of figures by output, by the key of what was compared."""


@dataclass(frozen=True, slots=True)
class CachedFigures:
    """The figures of one case, for the process that writes to the cache.

    Attributes:
        group: the group of cases whose figures are one entry of the store.
        key: of the case with its expected and actual values.
        figures: their record, by output.
    """

    group: str
    key: str
    figures: Mapping[str, Any]


@dataclass(slots=True)
class FigureCache:
    """The figures of comparisons, in a store.

    Attributes:
        store: where they are; each entry has those of a group of cases.
        unsaved: what was added and is not in the store; `take` empties it.
    """

    store: Entries
    unsaved: list[CachedFigures] = field(default_factory=list)
    _groups: OrderedDict[str, _Group] = field(default_factory=OrderedDict)

    def __reduce__(self) -> tuple[Any, ...]:
        return FigureCache, (self.store,)

    def key(
        self, case: Case, outcome: Outputs, expected: ExpectedOutputs, *, half: bool
    ) -> str | None:
        """Return the key of a case with its values; None if it has no stable form.

        Args:
            case: the case.
            outcome: what the backend returned.
            expected: what the case expects.
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
        return sha256(_sources_digest() + text.encode()).hexdigest()[:_KEY_DIGITS]

    def get(self, case: Case, key: str, outputs: Collection[str]) -> dict[str, Figures] | None:
        """Return the figures by output; None unless there are right ones of each of the outputs."""
        record = self._group(_group_of(case)).get(key)
        if record is None:
            return None
        try:
            figures = {name: value_of(Figures, record[name]) for name in outputs}
            return figures if all(map(_is_right, figures.values())) else None
        except (TypeError, ValueError, LookupError):
            return None  # Damaged in a way that the entry's digest does not reveal.

    def add(self, case: Case, key: str, figures: Mapping[str, Figures]) -> None:
        """Add the figures of a case whose outputs are right."""
        records = {name: record_of(each) for name, each in figures.items()}
        self.unsaved.append(CachedFigures(_group_of(case), key, records))

    def take(self) -> tuple[CachedFigures, ...]:
        """Return what was added since the last call, for the process that writes to the cache."""
        unsaved = tuple(self.unsaved)
        self.unsaved.clear()
        return unsaved

    def save(self) -> None:
        """Store what was added, and remove the oldest entries beyond the store's limits."""
        groups: dict[str, _Group] = {}
        for record in self.take():
            groups.setdefault(record.group, {})[record.key] = dict(record.figures)
        for group, records in groups.items():
            known = _read(self.store, group)
            self.store.put(_group_key(group), _bounded({**known, **records}))
            self._groups.pop(group, None)
        if groups:
            self.store.prune()

    def _group(self, group: str) -> _Group:
        if group not in self._groups:
            while len(self._groups) >= _MOST_GROUPS:
                self._groups.popitem(last=False)
            self._groups[group] = _read(self.store, group)
        return self._groups[group]


def _is_right(figures: Figures) -> bool:
    return not figures.differing and (figures.margin is None or figures.margin <= 1)


def _group_of(case: Case) -> str:
    """Return the group of a case: its operator, folder and file, as `gather/gather/boundary`."""
    operator, _, _ = case.identifier.partition("/")
    path = case.about.location.path
    return f"{operator}/{path.parent.name}/{path.stem}"


def _group_key(group: str) -> str:
    return sha256(b"figures\0" + _sources_digest() + group.encode()).hexdigest()


def _read(store: Entries, group: str) -> _Group:
    entry = store.get(_group_key(group))
    return entry if isinstance(entry, dict) else {}


def _bounded(group: _Group) -> _Group:
    """Return the newest figures of a group that fit into one entry."""
    total = len("{}")
    newest: list[str] = []
    for key in reversed(group):
        total += len(json.dumps(group[key], separators=(",", ":"))) + len(key) + len('"":,')
        if total > LARGEST_ENTRY:
            break
        newest.append(key)
    return {key: group[key] for key in reversed(newest)}


@cache
def _sources_digest() -> bytes:
    """Return a digest of everything besides a case and its values that figures depend on."""
    form = f"{_FORM}\0{np.__version__}\0{platform.machine()}"
    return sources_digest(form, *JUDGING_SOURCES)


def _digest_of(array: Array | Sample) -> list[Any]:
    """Return the form of an array and a digest of its bits."""
    if isinstance(array, Sample):
        known = [_digest_of(array.indices), _digest_of(array.values)]
        return ["sample", array.dtype.str, array.shape, array.digest, known]
    bits = np.ascontiguousarray(array)
    return [bits.dtype.str, array.shape, sha256(bits.data).hexdigest()]


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, with its type."""
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
