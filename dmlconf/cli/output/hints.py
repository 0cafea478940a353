"""Hints for authors of cases that a run could not check."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dmlconf.cases.loading.shared import SHARED
from dmlconf.cases.model import CaseTemplate, PlannedCase
from dmlconf.documents.files import resolved
from dmlconf.resources import cases_directory
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import ReasonKind

__all__ = ["hints", "outside_the_bundled_suite"]

_MOST_NAMED: Final = 3
"""The most cases without `expect:` that are named."""


def outside_the_bundled_suite(plan: Sequence[PlannedCase]) -> list[PlannedCase]:
    """Return the cases of a plan that are not in the bundled suite."""
    bundled = cases_directory().resolve()
    own: dict[Path, bool] = {}
    for planned in plan:
        path = planned.template.about.location.path
        if path not in own:
            own[path] = not _file(planned.template).is_relative_to(bundled)
    return [each for each in plan if own[each.template.about.location.path]]


def hints(log: RunLog, plan: Sequence[PlannedCase]) -> Iterator[str]:
    """Yield hints on cases that a run left unchecked since they have no expectation.

    Cases of the bundled suite, and cases whose folder has a recording, get no hints.
    """
    templates = {each.identifier: each.template for each in outside_the_bundled_suite(plan)}
    unchecked = dict.fromkeys(
        templates[verdict.case]
        for verdict in log.verdicts
        if verdict.case in templates
        and verdict.reason is not None
        and verdict.reason.kind is ReasonKind.NO_INDEPENDENT_EXPECTATION
    )
    copies: dict[Path, Path] = {}
    others = []
    for template in unchecked:
        folder = _file(template).parent
        recording = _missing_recording(template)
        if recording is None:
            others.append(template)
        else:
            copies[folder] = recording
    for folder, recording in copies.items():
        yield (
            f"{folder} was copied without its recording, which has the expected outputs: copy "
            f"{recording} there too, or add --against {shlex.quote(f'recording:{recording}')}"
        )
    unstated = [
        template
        for template in others
        if "expect" not in template.data and not _has_recording(template)
    ]
    for template in unstated[:_MOST_NAMED]:
        yield (
            f"{template.about.location}: {template.identifier} has no `expect:`; write the outputs "
            "there, or record them on a real DirectML"
        )
    if len(unstated) > _MOST_NAMED:
        yield f"{len(unstated) - _MOST_NAMED:,} more without `expect:`"


def _file(template: CaseTemplate) -> Path:
    return resolved(template.about.location.path)


def _has_recording(template: CaseTemplate) -> bool:
    """Return whether a case's folder, or its operator's for a case in `shared`, has a recording."""
    file = _file(template)
    suites = (each.parent for each in file.parents if template.shared and each.name == SHARED)
    own = next((suite / template.operator_name.lower() for suite in suites), file.parent)
    return bool(_recordings(own))


def _recordings(folder: Path) -> list[Path]:
    from dmlconf.backends.recording.file import SUFFIX  # Slow to import.

    return sorted(folder.glob(f"*{SUFFIX}"))


def _missing_recording(template: CaseTemplate) -> Path | None:
    """Return the bundled recording that belongs to a copied case file and was not copied."""
    file = _file(template)
    origin = cases_directory() / template.operator_name.lower()
    if template.shared:
        return None
    if _has_recording(template) or not (origin / file.name).is_file():
        return None
    return next(iter(_recordings(origin)), None)
