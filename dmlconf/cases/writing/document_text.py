"""Write a case file as YAML that is easy to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

__all__ = ["document_text"]

_LONGEST_TENSOR: Final = 150
"""A tensor's entry is written in flow style if its `str` has at most this many characters."""

_WIDTH: Final = 160


class _Dumper(yaml.SafeDumper):
    """Writes short tensors in flow style, even if they contain lists."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_mapping(
        self, tag: str, mapping: Any, flow_style: bool | None = None
    ) -> yaml.MappingNode:
        is_tensor = isinstance(mapping, Mapping) and {"Sizes", "DataType"} <= mapping.keys()
        if is_tensor and len(str(mapping)) <= _LONGEST_TENSOR:
            flow_style = True
        return super().represent_mapping(tag, mapping, flow_style)


def document_text(document: Mapping[str, Any]) -> str:
    """Return a case file as YAML, with short tensors and innermost parts in flow style."""
    return yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=False,
        width=_WIDTH,
        default_flow_style=None,
        allow_unicode=True,
    )
