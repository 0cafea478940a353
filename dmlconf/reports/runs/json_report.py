"""The JSON report on a run: one object, of the form `schemas/report.schema.json`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from dmlconf.reports.runs import remarks, summary
from dmlconf.reports.runs.shared_properties import SharedLine, shared_lines
from dmlconf.run_log.log import RunLog, verdict_data
from dmlconf.verdicts.breakdowns import unexplained_breakdowns
from dmlconf.verdicts.record import record_of

__all__ = ["VERSION", "render", "render_parts", "report_data"]

VERSION: Final = 1
"""Version of the form; it increases when readers of the old form could be misled."""


def report_data(log: RunLog) -> dict[str, Any]:
    """Return the report as plain values."""
    return {**_head(log), "verdicts": [verdict_data(verdict) for verdict in log.verdicts]}


def _head(log: RunLog) -> dict[str, Any]:
    header, footer, room = log.header, log.footer, remarks.room_totals(log.verdicts)
    return {
        "schema": "dmlconf-report",
        "version": VERSION,
        "environment": dict(header.environment),
        "summary": {str(status): count for status, count in summary.status_counts(log).items()},
        "room": {"elements": room.elements, "open": room.open, "loose": room.loose},
        "run": {
            "dmlconf": header.dmlconf,
            "backend": header.backend,
            "against": header.against,
            "started": header.started,
            "finished": footer.finished if footer else None,
            "seconds": footer.seconds if footer else None,
            "complete": log.complete,
            "selected": header.selected,
            "paths": list(header.paths),
            "options": dict(header.options),
            "suite_digest": header.suite_digest,
            "catalogue_digest": header.catalogue_digest,
            **({"shard": dict(header.shard)} if header.shard else {}),
            **({"workers": list(header.workers)} if header.workers else {}),
        },
        "declined": {
            operator: {"cases": cases, "of": of}
            for operator, (cases, of) in remarks.declined_cases(log).items()
        },
        "far_from_devices": [asdict(far) for far in remarks.far_operators(log)],
        **_breakdowns(log),
        "shared_properties": [_shared_data(line) for line in shared_lines(log)],
    }


def _breakdowns(log: RunLog) -> dict[str, Any]:
    found = [record_of(each) for each in unexplained_breakdowns(log.verdicts)]
    return {"unexplained_breakdowns": found} if found else {}


def _shared_data(line: SharedLine) -> dict[str, Any]:
    shared = line.shared
    return {
        "operators": list(shared.operators),
        "reasons": dict(shared.reasons),
        "sentence": line.sentence,
        "command": line.command,
        "condition": asdict(shared.condition) if shared.condition else None,
        "simpler": asdict(shared.simpler) if shared.simpler else None,
        "compared": shared.compared,
        "simplest": shared.simplest.case,
        "cases": [verdict.case for verdict in shared.failures],
    }


def render(log: RunLog) -> str:
    """Return the report as JSON in ASCII; infinities and NaN are text, since JSON lacks them."""
    return "".join(render_parts(log))


def render_parts(log: RunLog) -> Iterator[str]:
    """Yield the text of `render` in parts, so that a report of any length takes little memory."""
    head = json.dumps(_head(log), indent=2, allow_nan=False)
    yield head.removesuffix("\n}") + ',\n  "verdicts": ['
    separator = "\n"
    for verdict in log.verdicts:
        text = json.dumps(verdict_data(verdict), indent=2, allow_nan=False)
        yield separator + textwrap.indent(text, "    ")
        separator = ",\n"
    yield "\n  ]\n}\n" if log.verdicts else "]\n}\n"
