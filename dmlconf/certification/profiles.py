"""Certification profiles: which cases must have a verdict, and which verdicts are allowed.

There are profiles for feature levels, such as `schemas/profiles/5_0.yaml`, and one for backends
that follow ONNX; users may write others. A profile may leave out parts of the suite, such as model
cases, which the name `5_0+model` adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.protocol import Capabilities
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import needs_at_most
from dmlconf.catalogue.loader import operator_name
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel
from dmlconf.certification.json_text import canonical_json
from dmlconf.certification.waived_limit import WaivedLimit
from dmlconf.documents.files import is_file
from dmlconf.documents.problems import InvalidFilesError, Problem, name_hint
from dmlconf.documents.reader import Document, read_document
from dmlconf.documents.schema import bundled_checker, schema_problems
from dmlconf.excuses.condition_problems import operator_problems
from dmlconf.resources import schemas_directory
from dmlconf.tensors.datatypes import DataType
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict

__all__ = [
    "Profile",
    "UnknownProfileError",
    "certification_profile",
    "lint_profiles",
    "profile_digest",
    "profile_names",
    "read_profile",
    "refusal",
    "required_cases",
    "shortcomings",
    "split_profile",
]

_OF_TARGETS: Final = ("onnx-core",)
"""Profiles for backends that follow another specification than DirectML's documentation."""

_ENDINGS: Final = (".yaml", ".yml")
_FILE: Final = re.compile(r".*\.ya?ml(?=\+|\Z)", re.DOTALL)
"""The path in the name of a profile; a `+` in the path adds no part."""


class UnknownProfileError(LookupError):
    """A profile does not exist, or lacks a part; the message names what exists."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a certificate must hold verdicts on.

    Attributes:
        name: with the added parts, such as `5_0` or `5_0+model`.
        feature_level: the highest feature level that a case may need.
        operators: the only operators that count; None for all.
        kinds: the kinds of cases that count, by the name of their file; None for all. Cases of
            `parts` count as well.
        left_out: tags of cases that do not count.
        parts: tags of cases that the name adds.
        optional_data_types: data types that a device may lack.
        statuses: the allowed statuses, each with the allowed kinds of reason; None for all kinds.
        max_waived: how many cases the sender's waivers may excuse; None for any number.
        max_declined: how many cases the backend may be unable to express; None for any number.
    """

    name: str
    feature_level: FeatureLevel
    operators: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    left_out: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()
    optional_data_types: frozenset[DataType] = frozenset()
    statuses: Mapping[Status, frozenset[ReasonKind] | None] = field(default_factory=dict)
    max_waived: WaivedLimit | None = None
    max_declined: WaivedLimit | None = None

    def counts(self, planned: PlannedCase) -> bool:
        """Return whether a case must have a verdict.

        Raises:
            InvalidFilesError: the case cannot be built.
        """
        template = planned.template
        if self.operators is not None and template.operator_name not in self.operators:
            return False
        if template.has_relation:
            return False  # Outputs alone do not prove a relation, so nobody could verify it.
        if not self.left_out.isdisjoint(template.tags):
            return False
        of_part = not frozenset(self.parts).isdisjoint(template.tags)
        if self.kinds is not None and template.tags[0] not in self.kinds and not of_part:
            return False
        return needs_at_most(planned, self.feature_level)


def required_cases(profile: Profile, plan: Iterable[PlannedCase]) -> Iterator[PlannedCase]:
    """Yield the cases of a suite that must have a verdict, in their order.

    Raises:
        InvalidFilesError: a case cannot be built.
    """
    return filter(profile.counts, plan)


def refusal(profile: Profile, verdict: Verdict) -> str | None:
    """Return why a verdict is not allowed in a certificate; None if it is."""
    if verdict.status not in profile.statuses:
        return f"profile {profile.name} does not allow `{verdict.status}`"
    kinds = profile.statuses[verdict.status]
    kind = verdict.reason.kind if verdict.reason else None
    if kinds is None or kind in kinds:
        return None
    return f"profile {profile.name} does not allow `{verdict.status}` for `{kind}`"


def shortcomings(profile: Profile, capabilities: Capabilities) -> list[str]:
    """Return messages on what a device lacks of the profile's feature level and data types."""
    lacking = []
    if capabilities.feature_level < profile.feature_level:
        lacking.append(
            f"profile {profile.name} needs feature level {profile.feature_level}; "
            f"the device has {capabilities.feature_level}"
        )
    missing = frozenset(DataType) - profile.optional_data_types - capabilities.data_types
    if missing:
        listed = ", ".join(sorted(missing))
        lacking.append(f"profile {profile.name} needs {listed}, which the device lacks")
    return lacking


def profile_names() -> tuple[str, ...]:
    """Return the names of the bundled profiles: feature levels, the lowest first, then targets."""
    levels = tuple(str(level) for level in FEATURE_LEVELS if _bundled(str(level)).is_file())
    return (*levels, *(name for name in _OF_TARGETS if _bundled(name).is_file()))


def certification_profile(name: str) -> Profile | None:
    """Return the profile of this name or file; None if no bundled profile has the name.

    Args:
        name: the name of a bundled profile, or the path of a profile's file, which ends in `.yaml`
            or `.yml`; a suffix `+PART` adds a part.

    Raises:
        InvalidFilesError: its file cannot be read or is not a profile.
        UnknownProfileError: the profile has no such part.
    """
    base, parts = split_profile(name)
    path = _path(base)
    return None if path is None else _profile(path, base, parts)


def split_profile(name: str) -> tuple[str, list[str]]:
    """Return the profile's name or file, and the parts that are added: `5_0` and `model`."""
    file = _FILE.match(name)
    end = file.end() if file else 0
    rest, *parts = name[end:].split("+")
    return name[:end] + rest, parts


def read_profile(name: str) -> Profile:
    """Return the profile of this name or file; raise an error if there is none.

    Args:
        name: as for `certification_profile`.

    Raises:
        InvalidFilesError: its file cannot be read or is not a profile.
        UnknownProfileError: there is no such profile, or it has no such part.
    """
    profile = certification_profile(name)
    if profile is None:
        known = profile_names()
        hint = name_hint(name, known, f"the profiles are {', '.join(known)}")
        if is_file(Path(name)):
            hint = "the file of a profile ends in .yaml"
        raise UnknownProfileError(f"there is no profile {name}; {hint}")
    return profile


def lint_profiles() -> list[Problem]:
    """Return the problems of the bundled profiles."""
    problems: list[Problem] = []
    for path in sorted((schemas_directory() / "profiles").glob("*.yaml")):
        try:
            document = read_document(path)
            data = _inherited(document)
            if "feature_level" in data:
                _profile(path, path.stem, ())
            if document.data["profile"] != path.stem:
                message = f"the file is {path.name}, so the name must be {path.stem}"
                problems.append(document.problem(("profile",), message))
        except InvalidFilesError as error:
            problems += error.problems
    return problems


def _bundled(name: str) -> Path:
    return schemas_directory() / "profiles" / f"{name}.yaml"


def _path(name: str) -> Path | None:
    if name in profile_names():
        return _bundled(name)
    return Path(name) if name.endswith(_ENDINGS) else None


def _profile(path: Path, name: str, parts: Iterable[str]) -> Profile:
    document = read_document(path)
    data = _inherited(document)
    if "feature_level" not in data:
        raise InvalidFilesError([document.problem((), "`feature_level` is missing")])
    named = tuple(dict.fromkeys(parts))
    known = data.get("parts", {})
    for part in named:
        if part not in known:
            listed = ", ".join(known) or "none"
            raise UnknownProfileError(f"profile {name} has no part {part}; its parts are {listed}")
    return Profile(
        name="+".join((document.data["profile"], *sorted(named))),
        feature_level=FeatureLevel.parse(data["feature_level"]),
        operators=frozenset(map(operator_name, data["operators"])) if "operators" in data else None,
        kinds=frozenset(data["kinds"]) if "kinds" in data else None,
        left_out=frozenset(known) - frozenset(named),
        parts=tuple(sorted(named)),
        optional_data_types=frozenset(map(DataType, data.get("optional_data_types", ()))),
        statuses={
            Status(status): None if kinds == "any" else frozenset(map(ReasonKind, kinds))
            for status, kinds in data.get("statuses", {"passed": "any"}).items()
        },
        max_waived=_limit(data, "max_waived"),
        max_declined=_limit(data, "max_declined"),
    )


def _limit(data: Mapping[str, Any], name: str) -> WaivedLimit | None:
    return WaivedLimit.parse(str(data[name])) if name in data else None


def _inherited(document: Document, below: tuple[str, ...] = ()) -> Mapping[str, Any]:
    problems = _problems(document)
    if problems:
        raise InvalidFilesError(problems)
    data: Mapping[str, Any] = document.data
    if "extends" not in data:
        return data
    other = _bundled(data["extends"])
    if data["extends"] in below or not other.is_file():
        message = f"there is no bundled profile {data['extends']}"
        if data["extends"] in below:
            message = f"{data['extends']} extends itself"
        raise InvalidFilesError([document.problem(("extends",), message)])
    return {**_inherited(read_document(other), (*below, data["extends"])), **data}


def _problems(document: Document) -> list[Problem]:
    problems = schema_problems(document, bundled_checker("profile"), document.data)
    if problems:
        return problems
    data = document.data
    known = [str(level) for level in FEATURE_LEVELS]
    if "feature_level" in data and data["feature_level"] not in known:
        message = f"there is no feature level {data['feature_level']}"
        hint = f"the levels are {', '.join(known)}"
        problems.append(document.problem(("feature_level",), message, hint))
    for limit in ("max_waived", "max_declined"):
        try:
            _limit(data, limit)
        except ValueError as error:
            problems.append(document.problem((limit,), f"{data[limit]} {error}"))
    problems += operator_problems(document, ("operators",), data.get("operators", ()))
    for index, name in enumerate(data.get("optional_data_types", ())):
        if name not in DataType.__members__:
            message, hint = f"{name} is not a data type", f"one of {', '.join(DataType)}"
            problems.append(document.problem(("optional_data_types", index), message, hint))
    return problems


def profile_digest(profile: Profile) -> str:
    """Return the SHA-256 of a profile, in hexadecimal.

    The limits of waived and declined cases do not count: verifiers may have limits of their own.
    """
    statuses = {
        str(status): None if kinds is None else sorted(kinds)
        for status, kinds in profile.statuses.items()
    }
    demands = {
        "name": profile.name,
        "feature_level": str(profile.feature_level),
        "operators": None if profile.operators is None else sorted(profile.operators),
        "kinds": None if profile.kinds is None else sorted(profile.kinds),
        "left_out": sorted(profile.left_out),
        "parts": sorted(profile.parts),
        "optional_data_types": sorted(profile.optional_data_types),
        "statuses": statuses,
    }
    return sha256(canonical_json(demands)).hexdigest()
