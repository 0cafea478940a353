"""The text of a case file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

__all__ = ["document_text"]


class _Dumper(yaml.SafeDumper):
    """Writes lists of numbers in one line, and deeper structures as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def document_text(document: Mapping[str, Any]) -> str:
    """Return a case file's content as YAML, with the innermost lists and mappings in one line."""
    return yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=False,
        width=100,
        default_flow_style=None,
        allow_unicode=True,
    )
