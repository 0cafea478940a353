"""Case files that were checked before: what is kept of them, and while what it holds.

An entry stands for the bytes of one case file, checked by these sources of dmlconf against these
schemas. Where any of them differs, its key does, so that it is never asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any, Final

from dmlconf.cases.errors import CaseError
from dmlconf.cases.expansion import Expansion, UnstorableError
from dmlconf.cases.matrix import expand
from dmlconf.cases.model import Case, CaseTemplate, ExpectedRejection
from dmlconf.documents.store import Entries
from dmlconf.resources import schemas_directory, sources

__all__ = ["CheckedFile", "StoredFile", "Validated", "is_valid"]

_FORM: Final = "1"
"""Version of the form of entries."""

_SOURCES: Final = (
    "cases",
    "graphs",
    "catalogue",
    "documents",
    "tensors",
    "expressions.py",
    "resources.py",
)
"""What decides whether a file is valid and what it contains."""

_MOST_CASES: Final = 50_000
"""Of a file with more cases, the matrices are expanded again each time."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A case file without problems.

    Attributes:
        templates: its entries.
        expansions: its matrices, as far as they are expanded already.
        valid: the entries whose first case is known to break no constraint.
    """

    templates: tuple[CaseTemplate, ...]
    expansions: Mapping[CaseTemplate, Expansion] = field(default_factory=dict)
    valid: frozenset[CaseTemplate] = frozenset()


@dataclass(frozen=True, slots=True)
class StoredFile:
    """What is kept of a file.

    Attributes:
        data: the document, which fits the schemas.
        lines: on which its entries begin.
        expansions: for each entry its matrix, expanded; None where it has none.
        valid: for each entry, whether its first case is known to break no constraint.
    """

    data: Mapping[str, Any]
    lines: Sequence[int]
    expansions: Sequence[Expansion | None]
    valid: Sequence[bool]

    def checked(self, templates: Sequence[CaseTemplate]) -> CheckedFile:
        """Return the file with its templates."""
        expansions = {
            template: expansion
            for template, expansion in zip(templates, self.expansions, strict=True)
            if expansion is not None
        }
        valid = (t for t, known in zip(templates, self.valid, strict=True) if known)
        return CheckedFile(tuple(templates), expansions, frozenset(valid))


class Validated:
    """The files that were checked before."""

    def __init__(self, store: Entries) -> None:
        self._store = store
        self._changed = False

    def get(self, content: bytes) -> StoredFile | None:
        """Return what is kept of a file with this content; None where nothing is."""
        entry = self._store.get(_key(content))
        try:
            data, lines, expansions, valid = entry
            restored = [each and Expansion.restored(each) for each in expansions]
            count = len(data["cases"])
            if count == len(lines) == len(restored) == len(valid):
                return StoredFile(data, lines, restored, valid)
        except (TypeError, ValueError, LookupError, AttributeError):
            pass  # Nothing is kept, or it is damaged in a way that its digest does not tell.
        return None

    def put(
        self,
        content: bytes,
        data: Mapping[str, Any],
        templates: Sequence[CaseTemplate],
        first_cases: Sequence[Case],
    ) -> CheckedFile:
        """Keep a file, as far as that can be, and return it.

        Args:
            content: of the file.
            data: the document.
            templates: the file's entries.
            first_cases: the first case of each entry.
        """
        checked = CheckedFile(tuple(templates))
        if any(case.files for case in first_cases):
            return checked  # What other files hold is to be looked at each time.
        try:
            expansions = [_expansion(template) for template in templates]
            lines = [template.about.location.line for template in templates]
            stored = StoredFile(data, lines, expansions, list(map(is_valid, first_cases)))
            if sum(len(each.rows) for each in expansions if each) <= _MOST_CASES:
                whole = [each and each.stored() for each in expansions]
                # That of the operator, whose own file need not be read for it then.
                paged = {"page": templates[0].about.page, **data}
                self._store.put(_key(content), [paged, lines, whole, stored.valid])
                self._changed = True
            return stored.checked(templates)
        except (CaseError, UnstorableError):
            return checked  # A matrix that cannot be expanded is told of when its cases are.

    def close(self) -> None:
        """Keep the store within its bounds."""
        if self._changed:
            self._store.prune()


def is_valid(case: Case) -> bool:
    """Tell whether a case breaks no constraint, or says that it must be rejected."""
    return isinstance(case.expectation, ExpectedRejection) or not case.violations()


def _expansion(template: CaseTemplate) -> Expansion | None:
    if "matrix" not in template.data:
        return None
    return Expansion.of(planned.parameters for planned in expand(template))


def _key(content: bytes) -> str:
    return sha256(_fingerprint() + content).hexdigest()


@cache
def _fingerprint() -> bytes:
    """Return a digest of all that decides, beside its content, what a file is checked to be."""
    digest = sha256(_FORM.encode())
    for path in [*sources(*_SOURCES), *sorted(schemas_directory().rglob("*.*"))]:
        if path.is_file():
            digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.digest()
