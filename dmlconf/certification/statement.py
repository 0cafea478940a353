"""The in-toto Statement of a certificate: what it certifies, and a digest of each signed member.

Any attestation tool can check the digests, which are under `subject`.

Source: in-toto attestation framework v1, `spec/v1/statement.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from dmlconf.backends.protocol import Capabilities
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel
from dmlconf.certification.errors import RefusedError
from dmlconf.certification.json_text import canonical_json, parsed_json
from dmlconf.documents.problems import printable
from dmlconf.documents.schema import bundled_checker, first_error
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "PREDICATE_TYPE",
    "STATEMENT_TYPE",
    "UNSIGNED_MEMBERS",
    "Predicate",
    "Source",
    "changed_members",
    "read_statement",
    "statement_bytes",
]

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:dmlconf:certificate:v1"
UNSIGNED_MEMBERS: Final = ("attestation.json", "signers.pem")
"""The members with the signatures and their keys, which change when another key signs."""

_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of the outputs.

    Attributes:
        backend: the backend, as the header of the log names it.
        recording: SHA-256 of the recording that was certified; None for a run.
    """

    backend: str
    recording: str | None = None


@dataclass(frozen=True, slots=True)
class Predicate:
    """What a certificate says about itself.

    Attributes:
        dmlconf: the version that wrote the certificate.
        suite: SHA-256 of all case files.
        catalogue: SHA-256 of the catalogue.
        challenge: the number that the verifier chose; None if nobody chose one.
        environment: what the outputs were computed on, as in a run log's header.
    """

    dmlconf: str
    suite: str
    catalogue: str
    profile: str
    profile_digest: str
    challenge: int | None
    source: Source
    environment: Mapping[str, Any]
    capabilities: Capabilities


def statement_bytes(predicate: Predicate, members: Mapping[str, bytes]) -> bytes:
    """Return the statement over the members of an archive, as JSON."""
    source: dict[str, Any] = {"kind": "run", "backend": predicate.source.backend}
    if predicate.source.recording is not None:
        source |= {"kind": "recording", "digest": {"sha256": predicate.source.recording}}
    capabilities = predicate.capabilities
    subjects = [
        {"name": name, "digest": {"sha256": sha256(content).hexdigest()}}
        for name, content in sorted(members.items())
        if name not in UNSIGNED_MEMBERS
    ]
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "format": _FORMAT,
            "dmlconf": predicate.dmlconf,
            "suite": {"sha256": predicate.suite},
            "catalogue": {"sha256": predicate.catalogue},
            "profile": {"name": predicate.profile, "digest": {"sha256": predicate.profile_digest}},
            "challenge": None if predicate.challenge is None else str(predicate.challenge),
            "source": source,
            "environment": predicate.environment,
            "capabilities": {
                "feature_level": str(capabilities.feature_level),
                "data_types": sorted(map(str, capabilities.data_types)),
            },
        },
    }
    return canonical_json(statement)


def read_statement(payload: bytes) -> tuple[Predicate, Mapping[str, str]]:
    """Return the predicate of a statement, and the SHA-256 of each member by name.

    Raises:
        RefusedError: it is not a valid statement about a certificate.
    """
    data = parsed_json(payload, "the statement")
    checker = bundled_checker("certificate")
    if not checker.is_valid(data):
        kind = data.get("predicateType") if isinstance(data, dict) else None
        if isinstance(kind, str) and kind != PREDICATE_TYPE:
            message = f"the statement is about {kind[:80]!r}, not {PREDICATE_TYPE}"
            raise RefusedError(printable(message))
        raise RefusedError(printable(f"the statement: {first_error(checker, data)}"))
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in data["subject"]}
    if len(digests) != len(data["subject"]):
        raise RefusedError("the statement has a duplicate subject")
    return _predicate(data["predicate"]), digests


def _predicate(data: Mapping[str, Any]) -> Predicate:
    source, profile = data["source"], data["profile"]
    recording = source["digest"]["sha256"] if source["kind"] == "recording" else None
    return Predicate(
        dmlconf=data["dmlconf"],
        suite=data["suite"]["sha256"],
        catalogue=data["catalogue"]["sha256"],
        profile=profile["name"],
        profile_digest=profile["digest"]["sha256"],
        challenge=_challenge(data["challenge"]),
        source=Source(source["backend"], recording),
        environment=data["environment"],
        capabilities=_capabilities(data["capabilities"]),
    )


def _challenge(text: str | None) -> int | None:
    if text is None:
        return None
    if int(text) >= 1 << 64:
        raise RefusedError(f"the statement: there is no challenge {text}; 2**64 - 1 is the last")
    return int(text)


def _capabilities(data: Mapping[str, Any]) -> Capabilities:
    try:
        level = FeatureLevel.parse(data["feature_level"])
        data_types = frozenset(map(DataType, data["data_types"]))
    except ValueError as error:
        raise RefusedError(printable(f"the capabilities: {error}")) from error
    if level not in FEATURE_LEVELS:
        raise RefusedError(f"there is no feature level {level}")
    return Capabilities(level, data_types)


def changed_members(digests: Mapping[str, str], members: Mapping[str, bytes]) -> list[str]:
    """Return the names of members that are missing, added or changed since the statement."""
    actual = {
        name: sha256(content).hexdigest()
        for name, content in members.items()
        if name not in UNSIGNED_MEMBERS
    }
    names = sorted(digests.keys() | actual.keys())
    return [name for name in names if digests.get(name) != actual.get(name)]
