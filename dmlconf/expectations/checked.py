"""Find expectations that the reference contradicts, and needless disputes; cache the results.

Expectations are in case files and recordings. The result for a file and an operator is cached under
a digest of both, of the recordings, and of everything that the rules depend on. Results are not
cached if other files may hold data of the cases, or if a case did not fit into memory.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.loading.loader import Suite, valid_case
from dmlconf.cases.model import Case, CaseTemplate, ExpectedOutputs, ExpectedRejection, PlannedCase
from dmlconf.cases.selecting.selection import MODEL_TAG
from dmlconf.documents.problems import Problem
from dmlconf.documents.reader import line_problem
from dmlconf.documents.store import Entries
from dmlconf.engine.against import RecordingAgainst
from dmlconf.judging.contradictions import Contradiction, contradictions_of
from dmlconf.judging.figure_cache import JUDGING_SOURCES
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.resources import sources_digest
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample
from dmlconf.workers.memory import shortage

__all__ = ["expectation_problems", "fingerprint"]

_FORM: Final = "1"
"""Version of the format of cached results."""

_SOURCES: Final = (
    *JUDGING_SOURCES,
    "engine",
    "expectations",
    "workers",
    "cli/commands/writing/validate.py",
)
"""The sources that decide whether an expectation contradicts the reference."""

_HINT: Final = (
    "correct the expectation, or the reference; where the reference is wrong, say "
    "`disputes: reference`, and why in a note"
)
_HINT_OF_RECORDINGS: Final = (
    "record the case again, or correct the reference; where the reference is wrong, say "
    "`disputes: reference`, and why in a note"
)
_HINT_OF_DISPUTES: Final = "leave `disputes` out"


@dataclass(frozen=True, slots=True)
class _EntryProblem:
    index: int
    message: str
    hint: str


def expectation_problems(
    suite: Suite, recordings: Sequence[RecordingAgainst] = (), store: Entries | None = None
) -> Iterator[Problem]:
    """Yield a problem for each entry of a case file whose expectations contradict the reference.

    An entry may have two problems: one for its stated outputs, and one for its recorded outputs.
    For an entry that disputes the reference, the problem is that no output contradicts the
    reference. This problem needs stated outputs or recordings, and all cases of the entry must fit
    into memory. Cases that must be rejected, or do not fit into memory, are not checked.

    Args:
        suite: whole case files without other problems.
        recordings: the first one that has a case gives the outputs that the case does not state;
            these are checked, too, except in cases with the tag `model`, which take long, and in
            cases with a relation that state and dispute nothing.
        store: the cache of results; None to cache nothing.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a recording cannot be read.
        OSError: a case file or a recording cannot be read any more.
    """
    for (path, _), group in groupby(suite.plan(), _file_and_operator):
        plan = [planned for planned in group if _may_expect(planned.template, bool(recordings))]
        if not plan:
            continue
        key = _key(path, plan[0].template.operator_name, recordings)
        found = _kept(store, key)
        if found is None:
            found, left_out = _checked(plan, recordings)
            if store is not None and key is not None and not left_out:
                store.put(key, [[each.index, each.message, each.hint] for each in found])
        templates = {planned.template.index: planned.template for planned in plan}
        for each in found:
            if each.index in templates:
                yield _problem(templates[each.index], each)


def _file_and_operator(planned: PlannedCase) -> tuple[Path, str]:
    return planned.template.about.location.path, planned.template.operator_name


def _may_expect(template: CaseTemplate, recorded: bool) -> bool:
    expect = template.data.get("expect") or {}
    if "rejected" in expect:
        return False
    if expect or "disputes" in template.data:
        return True
    return recorded and not template.has_relation and MODEL_TAG not in template.tags


def _checked(
    plan: Sequence[PlannedCase], recordings: Sequence[RecordingAgainst]
) -> tuple[list[_EntryProblem], bool]:
    """Return the problems of the plan's entries, and whether a case did not fit into memory."""
    problems: list[_EntryProblem] = []
    any_left_out = False
    for template, group in groupby(plan, lambda planned: planned.template):
        stated: list[tuple[str, Contradiction]] = []
        recorded: list[tuple[str, Contradiction]] = []
        checks_recorded = bool(recordings) and MODEL_TAG not in template.tags
        left_out = False
        for planned in group:
            case = valid_case(planned)
            if isinstance(case.expectation, ExpectedRejection):
                continue
            if shortage(case) is not None:
                left_out = True
                continue
            case = case.with_inputs()
            allowances = CaseAllowances(case)
            stated += _contradictions(case, _stated(case), allowances)
            if checks_recorded:
                recorded += _contradictions(case, _recorded(case, recordings), allowances)
        any_left_out |= left_out
        if "disputes" in template.data:
            checked = checks_recorded or template.data.get("expect")
            if checked and not (stated or recorded or left_out):
                message = "the case disputes the reference, which nothing here contradicts"
                problems.append(_EntryProblem(template.index, message, _HINT_OF_DISPUTES))
            continue
        for found, hint in ((stated, _HINT), (recorded, _HINT_OF_RECORDINGS)):
            if found:
                problems.append(_EntryProblem(template.index, _message(found), hint))
    return problems, any_left_out


def _recorded(case: Case, recordings: Sequence[RecordingAgainst]) -> dict[str, Array | Sample]:
    """Return the outputs that a case does not state, from the first recording that has the case.

    Empty if there is no such recording, or if the case has no outputs there.
    """
    answers = (recording(case) for recording in recordings)
    answer = next((answer for answer in answers if answer is not None), None)
    if answer is None or not isinstance(answer.outcome, Outputs):
        return {}
    outputs: dict[str, Array | Sample] = {**answer.outcome.samples, **answer.outcome.arrays}
    return {name: output for name, output in outputs.items() if name not in _stated(case)}


def _stated(case: Case) -> Mapping[str, Array]:
    return case.expectation.outputs if isinstance(case.expectation, ExpectedOutputs) else {}


def _contradictions(
    case: Case, outputs: Mapping[str, Array | Sample], allowances: CaseAllowances
) -> Iterator[tuple[str, Contradiction]]:
    for contradiction in contradictions_of(case, outputs, allowances):
        yield case.identifier, contradiction


def _message(found: Sequence[tuple[str, Contradiction]]) -> str:
    name, contradiction = found[0]
    others = len({case for case, _ in found}) - 1
    more = f" and {others:,} more" if others else ""
    return f"{name}{more}: {contradiction.message}"


def _problem(template: CaseTemplate, found: _EntryProblem) -> Problem:
    location = template.about.location
    return line_problem(location.path, location.line, found.message, found.hint)


def _key(path: Path, operator: str, recordings: Sequence[RecordingAgainst]) -> str | None:
    """Return the key of a case file's result; None if other files may hold data of its cases.

    The names of the file and its folder decide the tags and identifiers of its cases.
    """
    content = path.read_bytes()
    if b"file" in content:
        return None
    path = path.absolute()
    about = f"{operator}\0{path.parent.name}/{path.name}\0"
    digest = sha256(fingerprint() + about.encode("utf-8", "surrogateescape") + content)
    for recording in recordings:
        digest.update(recording.content_digest(operator).encode())
    return digest.hexdigest()


def fingerprint() -> bytes:
    """Return a digest of what the checks of all case files depend on.

    This is the code in `_SOURCES`, the schemas, the version of NumPy, the processor's architecture
    and the format of cached results.
    """
    form = f"{_FORM}\0{np.__version__}\0{platform.machine()}"
    return sources_digest(form, *_SOURCES)


def _kept(store: Entries | None, key: str | None) -> list[_EntryProblem] | None:
    if store is None or key is None:
        return None
    try:
        kept = store.get(key)
        return [_EntryProblem(int(index), str(message), str(hint)) for index, message, hint in kept]
    except (TypeError, ValueError):
        return None
