"""Leave out cases with the tag `model` from plans, unless the user asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import MODEL_TAG, names_models, without_models
from dmlconf.cli.output.console import warn
from dmlconf.reports.runs.left_out import left_out_note

__all__ = ["leave_out_models", "without_unasked_models"]


def leave_out_models(
    paths: Sequence[Path],
    plan: Sequence[PlannedCase],
    selection: Mapping[str, Any],
    why: str,
) -> Sequence[PlannedCase]:
    """Return the plan without cases that have the tag `model`, and warn if any were left out.

    Nothing is left out if the user lists cases, as with `--case`, or asks for models by a profile,
    a file, a tag or a keyword.

    Args:
        selection: the options, as `load_chosen` takes them.
        why: the reason, which follows "cases with the tag `model` left out" in the warning.
    """
    rest, count = without_unasked_models(paths, plan, selection)
    if count:
        warn(left_out_note(count, why))
    return rest


def without_unasked_models(
    paths: Sequence[Path], plan: Sequence[PlannedCase], selection: Mapping[str, Any]
) -> tuple[Sequence[PlannedCase], int]:
    """Return the plan as `leave_out_models` does, and how many cases were left out."""
    named = any(selection.get(key) for key in ("identifiers", "case_list", "failed"))
    if profile := selection.get("profile"):
        from dmlconf.certification.profiles import split_profile

        named = named or MODEL_TAG in split_profile(profile)[1]
    tags, keywords = selection.get("tags", ()), selection.get("keywords")
    if named or names_models(paths, tags, keywords):
        return plan, 0
    return without_models(plan)
