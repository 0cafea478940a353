"""Say why no case was selected."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.identifiers import AmbiguousNameError, resolved
from dmlconf.cases.loading.loader import built_case
from dmlconf.cases.model import PlannedCase
from dmlconf.cli.common.completion import operators_of
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.options.case_lists import CaseList
from dmlconf.cli.options.named_operators import given_operators
from dmlconf.cli.options.selection import load, what_empties
from dmlconf.cli.options.unknown_names import did_you_mean, tags_of
from dmlconf.cli.output.console import say
from dmlconf.documents.files import is_file, is_folder
from dmlconf.documents.problems import name_hint
from dmlconf.documents.wording import first_names

__all__ = ["nothing_selected"]

_MOST_NAMED: Final = 3
"""The most names of one option that a message repeats."""


def nothing_selected(
    paths: Sequence[Path], selection: Mapping[str, Any], prefix: str = ""
) -> ExitCode:
    """Say which option left no case, perhaps with a hint; return the exit code."""
    reason = _reason(paths, selection)
    say(f"Error: {prefix}no case was selected{reason and f': {reason}'}")
    return ExitCode.NOTHING_SELECTED


def _reason(paths: Sequence[Path], selection: Mapping[str, Any]) -> str:
    failed: CaseList | None = selection.get("failed")
    if failed is not None and not failed.cases:
        return f"no case failed in the run of {failed.source}"
    tags = selection.get("tags", ())
    known_tags = sorted(tags_of(load(paths))) if tags else []
    unknown = [tag for tag in tags if tag not in known_tags]
    if len(unknown) == len(tags) > 0:
        are = "the only tag is" if len(known_tags) == 1 else "the tags are"
        hint = name_hint(unknown[0], known_tags, f"{are} {', '.join(known_tags)}")
        return f"no case has the tag {unknown[0]}; {hint}"
    missing = _missing(paths, selection.get("identifiers", ()))
    if missing is not None:
        return missing
    with suppress(AmbiguousNameError):  # With several operators, a short name may be ambiguous.
        return _emptying(paths, selection)
    return ""


def _missing(paths: Sequence[Path], identifiers: Sequence[str]) -> str | None:
    """Return what is wrong with the first value of `--case` that stands for no case, if any."""
    if not identifiers:
        return None
    whole = all("/" in identifier for identifier in identifiers)
    suite = load(paths, operators=operators_of(identifiers) if whole else ())
    names = [case.identifier for case in suite.plan()]
    missing: list[str] = []
    # Among all operators, a short name may stand for several cases.
    with suppress(AmbiguousNameError):
        missing = resolved(identifiers, names)[1]
    if not missing:
        return None
    hint = did_you_mean(missing[0], names)
    path = Path(missing[0])
    if not hint and (is_folder(path) or is_file(path)):
        quoted = shlex.quote(missing[0])
        kind = "folder" if is_folder(path) else "file"
        return f"{missing[0]} is a {kind}, not a case; `dmlconf list {quoted}` lists its cases"
    return f"there is no case {missing[0]}{hint or '; `dmlconf list` lists all'}"


def _emptying(paths: Sequence[Path], selection: Mapping[str, Any]) -> str:
    """Return which option no case fits that the options before it leave; "" if none is to blame."""
    options = _options(selection)
    profile = options.pop("profile", None)
    found = what_empties(paths, **selection)
    if found is None:
        # Of the options, only a profile is left; without one, the command leaves out all cases.
        return "" if profile is None else f"none of the cases belongs to {profile}"
    criterion, left = found
    if criterion == "operators":
        names = list(given_operators(selection["operators"]))
        return f"there is no case of {first_names(names, _MOST_NAMED)}"
    if criterion == "lists":
        unknown = _unknown_in_lists(paths, selection)
        if unknown is not None:
            return unknown
    names = list(options)
    before = " and ".join(options[name] for name in names[: names.index(criterion)])
    of = f" with {before}" if before else ""
    hint = _levels(left) if criterion == "feature_level" else ""
    if len(left) == 1:
        return f"the only case{of} does not fit {options[criterion]}{hint}"
    return f"none of the {len(left):,} cases{of} fits {options[criterion]}{hint}"


def _unknown_in_lists(paths: Sequence[Path], selection: Mapping[str, Any]) -> str | None:
    """Return that the cases of `--cases` or `--failed` are unknown, if all of one list are."""
    lists: list[CaseList] = [
        each for each in (selection.get("case_list"), selection.get("failed")) if each is not None
    ]
    names = [case.identifier for case in load(paths).plan()] if lists else []
    for each in lists:
        full, unknown = resolved(each.cases, names)
        if not full:
            listed = first_names(unknown, _MOST_NAMED)
            return f"there is no case {listed}, as {each.name} {each.source} names"
    return None


def _levels(cases: Sequence[PlannedCase]) -> str:
    return f"; the lowest that fits is {min(built_case(case).lowest_level for case in cases)}"


def _options(selection: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that choose cases as they are typed, by criterion, in their order."""
    lists = [("--case", each) for each in selection.get("identifiers", ())]
    lists += [("--cases", str(each)) for each in [selection.get("case_list")] if each]
    lists += [("--failed", str(each)) for each in [selection.get("failed")] if each]
    given = {
        "operators": [
            ("--operator", each) for each in given_operators(selection.get("operators", ()))
        ],
        "lists": lists,
        "tags": [("--tag", each) for each in selection.get("tags", ())],
        "without_tags": [("--without-tag", each) for each in selection.get("without_tags", ())],
        "keywords": _single("-k", selection.get("keywords")),
        "where": _single("--where", selection.get("where")),
        "feature_level": _single("--feature-level", selection.get("feature_level")),
        "profile": _single("--profile", selection.get("profile")),
    }
    return {criterion: _typed(pairs) for criterion, pairs in given.items() if pairs}


def _typed(pairs: Sequence[tuple[str, str]]) -> str:
    more = " ..." if len(pairs) > _MOST_NAMED else ""
    return " ".join(f"{name} {shlex.quote(value)}" for name, value in pairs[:_MOST_NAMED]) + more


def _single(option: str, value: str | None) -> list[tuple[str, str]]:
    return [] if value is None else [(option, value)]
