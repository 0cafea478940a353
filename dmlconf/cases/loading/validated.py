"""A cache of checked case files, so that an unchanged file is not checked again.

A file's key is a digest of the file, of the sources of dmlconf that check it, and of the schemas.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from dmlconf.cases.errors import CaseError
from dmlconf.cases.loading.expansion import Expansion, UnstorableError
from dmlconf.cases.loading.matrix import expand
from dmlconf.cases.loading.shared import KNOWN_PAGES, uses
from dmlconf.cases.model import Case, CaseTemplate, ExpectedRejection
from dmlconf.documents.repeats import with_repeats, without_repeats
from dmlconf.documents.store import Entries
from dmlconf.resources import sources_digest

__all__ = ["CheckedFile", "StoredFile", "Validated", "checks_digest", "is_valid"]

_FORM: Final = "4"
"""The version of the form in which files are stored."""

_SOURCES: Final = (
    "cases",
    "graphs",
    "catalogue",
    "documents",
    "tensors",
    "arithmetic.py",
    "expressions.py",
    "limits.py",
    "resources.py",
)
"""The sources that decide whether a file is valid and what it contains."""

_MOST_CASES: Final = 50_000
"""Files whose matrices have more cases in all are not cached."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A case file without problems.

    Attributes:
        expansions: matrices that are already expanded, by template.
        valid: the templates whose first case is known to be valid (`is_valid`).
    """

    templates: tuple[CaseTemplate, ...]
    expansions: Mapping[CaseTemplate, Expansion] = field(default_factory=dict)
    valid: frozenset[CaseTemplate] = frozenset()

    def only(self, operators: Collection[str]) -> CheckedFile:
        """Return the file without the shared entries of other operators."""
        own = (t for t in self.templates if not t.shared or t.operator_name in operators)
        return replace(self, templates=tuple(own))


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The cached contents of a file.

    Attributes:
        lines: the line on which each template's entry begins.
        expansions: the expanded matrix of each template, or None.
        valid: whether each template's first case is known to be valid (`is_valid`).
    """

    data: Mapping[str, Any]
    lines: Sequence[int]
    expansions: Sequence[Expansion | None]
    valid: Sequence[bool]

    def checked(self, templates: Sequence[CaseTemplate]) -> CheckedFile:
        """Return the checked file with these templates."""
        expansions = {
            template: expansion
            for template, expansion in zip(templates, self.expansions, strict=True)
            if expansion is not None
        }
        valid = (t for t, known in zip(templates, self.valid, strict=True) if known)
        return CheckedFile(tuple(templates), expansions, frozenset(valid))


class Validated:
    """The files that were checked earlier."""

    def __init__(self, store: Entries) -> None:
        self._store = store
        self._changed = False

    def get(self, content: bytes) -> StoredFile | None:
        """Return the cached contents of a file with these bytes; None if they are not cached."""
        entry = self._store.get(_key(content))
        try:
            data, lines, expansions, valid = with_repeats(entry)
            known: dict[int, Any] = {}
            restored = [each and Expansion.restored(each, known) for each in expansions]
            if len(uses(data)) == len(lines) == len(restored) == len(valid):
                return StoredFile(data, lines, restored, valid)
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
            pass  # Nothing is cached, or the cached value has another form.
        return None

    def put(
        self,
        content: bytes,
        data: Mapping[str, Any],
        templates: Sequence[CaseTemplate],
        first_cases: Sequence[Case],
    ) -> CheckedFile:
        """Return the checked file, and cache it if possible."""
        checked = CheckedFile(tuple(templates))
        if any(case.files for case in first_cases):
            return checked  # Data files may change, so they are checked each time.
        try:
            expansions = [_expansion(template) for template in templates]
            lines = [template.about.location.line for template in templates]
            stored = StoredFile(data, lines, expansions, list(map(is_valid, first_cases)))
            if sum(len(each) for each in expansions if each) <= _MOST_CASES:
                whole = [each and each.stored() for each in expansions]
                # With the operators' pages, the catalogue's files need not be read.
                pages = {template.operator_name: template.about.page for template in templates}
                paged = {**data, KNOWN_PAGES: pages}
                kept = without_repeats([paged, lines, whole, stored.valid])
                self._store.put(_key(content), kept)
                self._changed = True
            return stored.checked(templates)
        except (CaseError, UnstorableError):
            return checked  # If a matrix cannot be expanded, `Suite.plan` raises an error.

    def close(self) -> None:
        """Prune the store if anything was added."""
        if self._changed:
            self._store.prune()


def checks_digest() -> bytes:
    """Return a digest of the sources and schemas that decide whether a file is valid."""
    return sources_digest(_FORM, *_SOURCES)


def is_valid(case: Case) -> bool:
    """Return whether a case expects a rejection, or breaks no enforced constraint."""
    return isinstance(case.expectation, ExpectedRejection) or not case.violations()


def _expansion(template: CaseTemplate) -> Expansion | None:
    if "matrix" not in template.data:
        return None
    return Expansion.of(planned.parameters for planned in expand(template))


def _key(content: bytes) -> str:
    return sha256(checks_digest() + content).hexdigest()
