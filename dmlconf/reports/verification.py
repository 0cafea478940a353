"""Report whether a certificate holds: for the terminal, as JSON, and as one page of Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dmlconf.certification.acceptance import share_text
from dmlconf.certification.findings import Finding, FindingKind, Result, Verification
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted, first_names
from dmlconf.reports.markdown_text import escaped, items
from dmlconf.reports.markdown_text import table as markdown_table
from dmlconf.verdicts.verdict import ReasonKind

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["VERSION", "facts", "render_json", "render_markdown", "sentence", "table"]

VERSION: Final = 1
"""Version of the JSON form; changes that could mislead readers of the old form raise it."""

_MOST_CASES: Final = 10
"""The most cases that a line names."""


def sentence(verification: Verification) -> str:
    """Return the result of the verification in one sentence."""
    name = printable(verification.file)
    match verification.result:
        case Result.HOLDS:
            cases = sum(verification.summary.values())
            judged = "1 case was" if cases == 1 else f"{cases:,} cases were"
            return f"{name}: the certificate holds: {judged} judged again"
        case Result.DOES_NOT_HOLD:
            return f"{name}: the certificate does not hold"
        case Result.REFUSED if verification.predicate is not None:
            return f"{name}: refused: {', '.join(f.kind.words for f in verification.findings)}"
        case Result.REFUSED if verification.unread:
            (finding,) = verification.findings
            return f"{name} {finding.message}; expected a certificate that `dmlconf certify` wrote"
        case Result.REFUSED:
            return f"{name}: refused: not a certificate, or changed after it was made"


def facts(verification: Verification) -> Iterator[tuple[str, str]]:
    """Yield facts about a certificate as names and values, the most important first.

    There are none if the file cannot be read, is no certificate, or was changed after it was made.
    """
    predicate = verification.predicate
    if predicate is None:
        return
    environment = predicate.environment
    backend, version = environment["backend"], environment["version"]
    yield "Device", str(environment["adapter"] or "none")
    yield "Driver", str(environment["driver"] or "none")
    if backend == "directml":
        yield "DirectML", str(version)
    else:
        yield "Runtime", f"{backend} {version}, which is not DirectML"
    if "target" in environment["details"]:
        yield "Judged by", f"what {environment['details']['target']} promises"
    yield "Profile", predicate.profile
    yield "Waived", _waived(verification)
    for signer in verification.signers:
        given = f"{signer.origin or 'a key'}, given with --key"
        origin = given if signer.trusted else "an enclosed key"
        yield "Signed by", f"{signer.keyid} ({origin})"
    if not verification.signers:
        yield "Signed by", "nobody"
    statement = verification.statement
    for key in ("vendor", "product", "contact"):
        if key in statement:
            yield f"{key.capitalize()} (according to the sender)", str(statement[key])
    yield "Source", "a recording" if predicate.source.recording else "a run"
    yield "Backend", predicate.source.backend
    yield "Platform", str(environment["platform"] or "none")
    yield "Feature level", str(predicate.capabilities.feature_level)
    yield "Challenge", "none" if predicate.challenge is None else str(predicate.challenge)
    if verification.run is not None:
        yield "Run", " to ".join(verification.run)
    yield "Made by", f"dmlconf {predicate.dmlconf}"
    yield "Suite", predicate.suite
    yield "Catalogue", predicate.catalogue
    if verification.summary:
        counts = sorted(verification.summary.items(), key=lambda item: -item[1])
        yield "Verdicts", ", ".join(f"{count:,} {status}" for status, count in counts)


_EXCUSES: Final = {
    ReasonKind.WAIVER: "by waivers of the sender",
    ReasonKind.KNOWN_FAULT: "by known faults of DirectML",
    ReasonKind.DEVIATION: "by what the target promises otherwise",
    ReasonKind.SUBSTRATE: "by limits of the substrate",
}


def _waived(verification: Verification) -> str:
    cases = sum(verification.summary.values())
    if not cases:
        return "not known: no case was judged"
    counts: Counter[str] = Counter()
    for name, waived in verification.waived.items():
        counts[name.partition(":")[0]] += len(waived)
    if not counts:
        return f"none of {counted(cases, 'case')}"
    parts = [f"{counts[kind]:,} {text}" for kind, text in _EXCUSES.items() if counts[kind]]
    return f"{share_text(counts.total(), cases)}: {', '.join(parts)}"


def _lines(verification: Verification) -> Iterator[tuple[str, list[str]]]:
    if verification.findings and not verification.unread:
        yield (
            "Why it does not hold",
            [f"{_reason(finding)}{_cases(finding.cases)}" for finding in verification.findings],
        )
    if verification.notes:
        yield "Before you accept it", list(verification.notes)
    if verification.waived:
        yield (
            "Excused failures",
            [
                f"{name}: {counted(len(cases), 'case')}{_cases(cases)}"
                for name, cases in verification.waived.items()
            ],
        )


def _reason(finding: Finding) -> str:
    if finding.kind is FindingKind.REFUSED:
        return finding.message
    return f"{finding.kind.words}: {finding.message}"


def _cases(cases: Any) -> str:
    return f": {first_names(cases, _MOST_CASES)}" if cases else ""


def table(verification: Verification) -> RenderableType:
    """Return the report for the terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, value in facts(verification):
        grid.add_row(Text(name, style="bold"), Text(printable(value), overflow="fold"))
    parts: list[Any] = [grid] if verification.predicate else []
    for heading, lines in _lines(verification):
        parts.append(Text(f"{chr(10) if parts else ''}{heading}:", style="bold"))
        parts += [Text(f"  {printable(line)}") for line in lines]
    good = verification.result is Result.HOLDS
    parts.append(
        Text(
            f"{chr(10) if parts else ''}{sentence(verification)}",
            style="bold green" if good else "bold red",
        )
    )
    return Group(*parts)


def render_json(verification: Verification) -> str:
    """Return the verification as JSON, of the form `schemas/verification.schema.json`."""
    predicate = verification.predicate
    data = {
        "schema": "dmlconf-verification",
        "version": VERSION,
        "file": verification.file,
        "result": verification.result,
        "findings": [
            {"kind": f.kind, "message": f.message, "cases": list(f.cases)}
            for f in verification.findings
        ],
        "notes": list(verification.notes),
        "signers": [{"keyid": s.keyid, "trusted": s.trusted} for s in verification.signers],
        "statement": dict(verification.statement),
        "certificate": None
        if predicate is None
        else {
            "dmlconf": predicate.dmlconf,
            "suite_digest": predicate.suite,
            "catalogue_digest": predicate.catalogue,
            "profile": predicate.profile,
            "challenge": predicate.challenge,
            "recording": predicate.source.recording,
            "environment": dict(predicate.environment),
            "feature_level": str(predicate.capabilities.feature_level),
            "data_types": sorted(predicate.capabilities.data_types),
        },
        "run": list(verification.run) if verification.run else None,
        "summary": dict(verification.summary),
        "waived_by_sender": sum(
            len(cases)
            for name, cases in verification.waived.items()
            if name.startswith(f"{ReasonKind.WAIVER}: ")
        ),
        "excused": {name: list(cases) for name, cases in verification.waived.items()},
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def render_markdown(verification: Verification) -> str:
    """Return the verification as one page of Markdown."""
    return "\n".join(_page(verification)) + "\n"


def _page(verification: Verification) -> Iterator[str]:
    yield f"# Certificate {escaped(verification.result)}"
    yield ""
    yield f"{escaped(sentence(verification))}."
    if verification.predicate is not None:
        yield ""
        rows = (map(escaped, fact) for fact in facts(verification))
        yield from markdown_table(["", ""], rows)
    for heading, lines in _lines(verification):
        yield ""
        yield f"## {heading}"
        yield ""
        yield from items(lines)
    text = verification.statement.get("text")
    if text:
        yield ""
        yield "## Statement of the sender"
        yield ""
        yield escaped(str(text))
