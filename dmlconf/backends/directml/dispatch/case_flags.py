"""Execution flags, such as DISABLE_META_COMMANDS, that a case asks for by tags."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from dmlconf.backends.directml.api.dml import DML_EXECUTION_FLAGS
from dmlconf.cases.model import (
    DESCRIPTORS_VOLATILE_TAG,
    HALF_PRECISION_TAG,
    NO_METACOMMANDS_TAG,
)

__all__ = ["FLAG_TAGS", "flags_of"]

FLAG_TAGS: Final[Mapping[str, DML_EXECUTION_FLAGS]] = {
    HALF_PRECISION_TAG: DML_EXECUTION_FLAGS.ALLOW_HALF_PRECISION_COMPUTATION,
    NO_METACOMMANDS_TAG: DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS,
    DESCRIPTORS_VOLATILE_TAG: DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE,
}
"""The flag that each of `dmlconf.cases.model.EXECUTION_TAGS` asks for."""


def flags_of(tags: Collection[str]) -> DML_EXECUTION_FLAGS:
    """Return the flags that tags ask for."""
    flags = DML_EXECUTION_FLAGS.NONE
    for tag, flag in FLAG_TAGS.items():
        if tag in tags:
            flags |= flag
    return flags
