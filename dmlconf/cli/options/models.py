"""Cases of models, which some commands and backends select only on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import MODEL_TAG, names_models, without_models
from dmlconf.cli.output.console import warn
from dmlconf.documents.wording import counted

__all__ = ["WITHOUT_MODELS", "leave_out_models"]

WITHOUT_MODELS: Final[Mapping[str, str]] = {
    "numpy": "on numpy, where nothing would judge them",
    "recording": "of a replay, because they are not recorded",
}
"""Backends that select cases of models only on request, and why."""


def leave_out_models(
    paths: Sequence[Path],
    plan: list[PlannedCase],
    selection: Mapping[str, Any],
    why: str | None,
) -> list[PlannedCase]:
    """Return the plan without cases of models, with a warning, unless the user asks for them.

    Args:
        paths: the paths, as given.
        plan: what the options choose.
        selection: the options, as `load_chosen` takes them.
        why: continues "cases with the tag `model` left out"; None if they are selected.
    """
    named = any(selection.get(key) for key in ("identifiers", "case_list", "failed"))
    named = named or MODEL_TAG in (selection.get("profile") or "").split("+")[1:]
    tags, keywords = selection.get("tags", ()), selection.get("keywords")
    if why is None or named or names_models(paths, tags, keywords):
        return plan
    rest, count = without_models(plan)
    if count:
        cases = f"{counted(count, 'case')} with the tag `{MODEL_TAG}`"
        warn(f"{cases} left out {why}: select them with --tag {MODEL_TAG}")
    return rest
