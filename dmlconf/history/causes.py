"""Name possible causes of a changed verdict, such as the case, dmlconf, its rules or the driver."""

from __future__ import annotations

from typing import Final

from dmlconf.history.timeline import RunRow, VerdictAt

__all__ = ["NOTHING", "causes"]

NOTHING: Final = "nothing that is recorded"
"""What messages name if a verdict changed and no possible cause differs."""


def causes(before: VerdictAt, after: VerdictAt, last: RunRow, first: RunRow) -> tuple[str, ...]:
    """Return the possible causes that differ between two runs.

    The case is named if the verdicts have different definitions. If a definition is unknown or both
    are equal, the suite is named where it differs: the case's data may have changed.

    Args:
        last: the last run with the earlier verdict.
        first: the first run with the later verdict.
    """
    old, new = last.environment, first.environment
    known = before.definition and after.definition
    names = []
    if known and before.definition != after.definition:
        names.append("case")
    elif last.suite != first.suite:
        names.append("suite")
    if last.dmlconf != first.dmlconf:
        names.append(f"dmlconf {last.dmlconf} to {first.dmlconf}")
    if last.catalogue != first.catalogue:
        names.append("rules")
    if last.against != first.against:
        names.append(f"expected values from {last.against} to {first.against}")
    if old.driver != new.driver:
        names.append(f"driver {old.driver or 'none'} to {new.driver or 'none'}")
    if old.version != new.version:
        names.append(f"{_product(new.backend)} {old.version or 'none'} to {new.version or 'none'}")
    if old.machine != new.machine:
        names.append("machine")
    return tuple(names)


def _product(backend: str) -> str:
    name = backend.partition(":")[0]
    return "DirectML" if name == "directml" else name
