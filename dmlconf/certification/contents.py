"""Members of a certificate besides its outcomes: the log, the vendor's statement, waivers."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any, Final

from dmlconf.backends.protocol import Environment
from dmlconf.backends.subject import device_details
from dmlconf.cases.model import PlannedCase
from dmlconf.certification.errors import RefusedError
from dmlconf.documents.schema import checked_document
from dmlconf.excuses.waivers import Waiver, Waivers, effective_waivers
from dmlconf.run_log.log import Footer, Header, InvalidLogError, LogWriter, RunLog, read_log
from dmlconf.verdicts.verdict import Status, Verdict

__all__ = [
    "device_environment",
    "log_bytes",
    "read_log_member",
    "read_statement_file",
    "waivers_of_run",
]


def device_environment(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an environment's record without values that differ between runs on one device."""
    return {**record, "details": device_details(record["details"])}


def log_bytes(
    header: Header, verdicts: Mapping[str, Verdict], plan: Sequence[PlannedCase], finished: str
) -> bytes:
    """Return the run log of a certificate, in the order of the plan.

    Its only times are the beginning and the end of the run.

    Args:
        verdicts: one for each case of the plan, by the case's identifier.
    """
    stream = io.StringIO()
    writer = LogWriter(stream)
    writer.header(header)
    for place, planned in enumerate(plan):
        writer.verdict(_timeless(verdicts[planned.identifier]), place)
    counts = Counter(verdict.status for verdict in verdicts.values())
    summary = {status.value: counts[status] for status in Status}
    writer.footer(Footer(finished, 0.0, True, summary))
    return stream.getvalue().encode()


def _timeless(verdict: Verdict) -> Verdict:
    """Return a verdict without times, processes and their output.

    Of the location only the case file and its folder are left.
    """
    path = PurePath(verdict.location.replace("\\", "/"))
    location = "/".join(path.parts[-2:])
    reason = verdict.reason and replace(verdict.reason, diagnostics="")
    return (
        verdict.ran(seconds=0.0, dispatch_seconds=(), process=None, sequence=None)
        .of_case(location=location)
        .judged(reason=reason)
    )


_LONGEST_LINE_BYTES: Final = 1 << 20


def read_log_member(
    content: bytes,
    folder: Path,
    cases: int,
    kept: Callable[[Verdict], Verdict] = lambda verdict: verdict,
) -> RunLog:
    """Read the log of a certificate.

    Args:
        folder: where a temporary file is written.
        cases: how many verdicts the log must have.
        kept: returns what to keep of each verdict.

    Raises:
        RefusedError: the log is not whole, or a line is missing, superfluous or too long.
    """
    lines = content.count(b"\n")
    if lines != cases + 2:
        raise RefusedError(
            f"run.jsonl has {lines:,} lines, not one for each of {cases:,} cases "
            "between its header and its footer"
        )
    for number, line in enumerate(io.BytesIO(content), 1):
        if len(line) > _LONGEST_LINE_BYTES:
            raise RefusedError(
                f"run.jsonl:{number}: a line of more than {_LONGEST_LINE_BYTES:,} bytes"
            )
    path = folder / "run.jsonl"
    path.write_bytes(content)
    try:
        log = read_log(path, keep=kept)
    except InvalidLogError as error:
        raise RefusedError(str(error).replace(str(path), "run.jsonl")) from error
    finally:
        path.unlink()
    if log.footer is None:
        raise RefusedError("run.jsonl has no footer")
    return log


def read_statement_file(path: Path) -> Mapping[str, Any]:
    """Return the content of a vendor's statement.

    Raises:
        InvalidFilesError: the file cannot be read or does not fit its schema.
    """
    data: Mapping[str, Any] = checked_document(path, "vendor-statement").data
    return data


def waivers_of_run(waivers: tuple[Waiver, ...], header: Header) -> Waivers:
    """Return the waivers that apply to the environment of a run on the day of the run.

    Raises:
        RefusedError: the log does not say when the run began.
    """
    try:
        day = datetime.fromisoformat(header.started).date()
    except ValueError as error:
        raise RefusedError("run.jsonl does not say on which day the run began") from error
    record = header.environment
    names = ("backend", "version", "adapter", "driver", "details")
    environment = Environment(**{name: record[name] for name in names})
    return effective_waivers(waivers, environment, day)
