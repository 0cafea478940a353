"""Compare the verdicts in a certificate's log with the verifier's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from dmlconf.certification.findings import Finding, FindingKind
from dmlconf.certification.json_text import canonical_json
from dmlconf.documents.problems import printable
from dmlconf.run_log.log import RunLog, verdict_data
from dmlconf.verdicts.verdict import Execution, Identity, Judgement, Reason, Verdict

__all__ = ["compared", "wrong_log"]

_FIGURES = "figures"


def compared(verdict: Verdict) -> Verdict:
    """Return what is compared or reported of a verdict, without the rest, which can be large.

    `output_digests` has a digest of all figures, under the name `figures`.
    """
    figures = canonical_json(verdict_data(verdict)["figures"])
    reason = verdict.reason and Reason(verdict.reason.kind, verdict.reason.message)
    return Verdict(
        Identity(verdict.case, verdict.operator, verdict.tags),
        Judgement(
            verdict.status, reason=reason, unchecked_outputs=verdict.judgement.unchecked_outputs
        ),
        Execution(output_digests={_FIGURES: sha256(figures).hexdigest()}),
    )


def wrong_log(log: RunLog, verdicts: Mapping[str, Verdict]) -> Iterator[Finding]:
    """Yield a `Finding` for each case on whose judgement the log and the verifier disagree."""
    for logged in log.verdicts:
        verdict = verdicts.get(logged.case)
        if verdict is not None and _judgement(logged) != _judgement(verdict):
            message = f"the log says {_spoken(logged)}; the outcome is {_spoken(verdict, True)}"
            yield Finding(FindingKind.WRONG_LOG, printable(message), (verdict.case,))


def _judgement(verdict: Verdict) -> tuple[object, ...]:
    """Return the parts of a verdict that must be the same on every machine."""
    kind = verdict.reason.kind if verdict.reason else None
    return verdict.status, kind, verdict.operator, verdict.tags, verdict.judgement.unchecked_outputs


def _spoken(verdict: Verdict, particulars: bool = False) -> str:
    if verdict.reason is None:
        return f"`{verdict.status}`"
    text = f"`{verdict.status}` for `{verdict.reason.kind}`"
    return f"{text}: {verdict.reason.message}" if particulars else text
