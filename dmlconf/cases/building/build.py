"""Build a case from its entry in a case file, and from its parameters if the entry is a matrix."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from typing import Final

from dmlconf.cases.building.operator_build import build_operator_case
from dmlconf.cases.model import Case, CaseTemplate, PlannedCase

__all__ = ["build"]


def build(planned: PlannedCase) -> Case:
    """Build a planned case of an operator or of a graph.

    Raises:
        CaseError: the entry is not a valid case with these parameters.
    """
    if planned.template.is_graph:
        from dmlconf.cases.building.graph_build import build_graph  # Many runs have no graphs.

        case: Case = build_graph(planned)
    else:
        case = build_operator_case(planned)
    object.__setattr__(case, "source", _source_of(planned))
    return case


_JSON: Final = json.JSONEncoder(separators=(",", ":"))


def _source_of(planned: PlannedCase) -> str | None:
    """Return a digest of a case's entry and parameters; None if the entry is not JSON."""
    entry = _entry_digest(planned.template)
    if entry is None:
        return None
    row = _JSON.encode([planned.identifier, planned.parameters])
    return sha256(entry + row.encode()).hexdigest()


@lru_cache(maxsize=64)  # Cases of one template follow each other.
def _entry_digest(template: CaseTemplate) -> bytes | None:
    parts = template.operator_name, template.tags, template.challenge, template.data
    try:
        return sha256(_JSON.encode(parts).encode()).digest()
    except (TypeError, ValueError):
        return None
