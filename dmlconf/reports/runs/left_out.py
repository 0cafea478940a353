"""The remark of a report on cases with the tag `model`, which some runs leave out by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlconf.cases.selecting.selection import MODEL_TAG
from dmlconf.documents.wording import counted
from dmlconf.run_log.header_differences import MODELS_LEFT_OUT
from dmlconf.run_log.log import Header

__all__ = ["WITHOUT_MODELS", "left_out_lines", "left_out_note"]

WITHOUT_MODELS: Final[Mapping[str, str]] = {
    "numpy": "on numpy, where nothing would judge them",
    "recording": "of a replay, because they are not recorded",
}
"""Backends that run cases of models only on request, and why."""


def left_out_note(count: int, why: str) -> str:
    """Return the remark; `why` follows the words "left out", as values of `WITHOUT_MODELS` do."""
    cases = f"{counted(count, 'case')} with the tag `{MODEL_TAG}`"
    return f"{cases} left out {why}: select them with --tag {MODEL_TAG}"


def left_out_lines(header: Header) -> list[str]:
    """Return the remark on a run; an empty list if it left out no cases of models by default."""
    count = header.options.get(MODELS_LEFT_OUT)
    why = WITHOUT_MODELS.get(header.backend.partition(":")[0])
    return [left_out_note(count, why)] if count and why else []
