"""Fill the lists of statuses in the JSON Schemas of logs and reports."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from dmlconf.verdicts.status import Status

__all__ = ["with_statuses"]


def with_statuses(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema of run logs or of reports with the statuses of `Status`.

    The summary of a report then requires each status.
    """
    filled = deepcopy(dict(schema))
    names = [str(status) for status in Status]
    filled["$defs"]["status"]["enum"] = names
    summary = filled.get("properties", {}).get("summary")
    if summary is not None:
        summary["required"] = names
    return filled
