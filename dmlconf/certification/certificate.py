"""Certificates as files: made, signed, and read with a check that they are unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dmlconf.certification.archive import Archive, archive_bytes, read_archive
from dmlconf.certification.envelope import Envelope, Signature, envelope_bytes, read_envelope
from dmlconf.certification.errors import CertificationError, RefusedError
from dmlconf.certification.keys import PrivateKey, PublicKey, public_keys
from dmlconf.certification.outcomes import StoredOutcomes, read_outcomes
from dmlconf.certification.statement import (
    Predicate,
    changed_members,
    read_statement,
    statement_bytes,
)
from dmlconf.documents.problems import printable

__all__ = ["SUFFIX", "Certificate", "Signer", "new_certificate", "read_certificate", "signed"]

SUFFIX = ".dmlcert"

_ENVELOPE = "attestation.json"
_SIGNERS = "signers.pem"
_REQUIRED = (_ENVELOPE, "run.jsonl", "outcomes.jsonl", "outputs.bin")


@dataclass(frozen=True, slots=True)
class Signer:
    """The owner of a signature on a certificate.

    Attributes:
        keyid: SHA-256 of the public key in DER form.
        trusted: whether the verifier named this key. Otherwise the key came with the file, and
            nobody vouches for its owner.
        origin: the file of a trusted key; empty for other keys.
    """

    keyid: str
    trusted: bool
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate whose members match its statement.

    Attributes:
        signers: the owners of valid signatures.
        lacking: keys that must have signed the certificate and have not.
    """

    predicate: Predicate
    signers: tuple[Signer, ...]
    members: Mapping[str, bytes]
    outcomes: StoredOutcomes
    lacking: tuple[PublicKey, ...] = ()


def new_certificate(
    predicate: Predicate, members: Mapping[str, bytes], key: PrivateKey | None = None
) -> bytes:
    """Return the bytes of a certificate's file.

    Args:
        key: signs it; None leaves it unsigned.

    Raises:
        CertificationError: the file or one of its members would be too large.
    """
    envelope = Envelope(statement_bytes(predicate, members))
    content = archive_bytes({**members, _ENVELOPE: envelope_bytes(envelope)})
    return content if key is None else _signed(Archive(members), envelope, key)


def signed(path: Path, key: PrivateKey) -> bytes:
    """Return the bytes of a certificate with one more signature.

    Raises:
        RefusedError: the file is not a certificate, was changed after it was made, or cannot be
            read.
        CertificationError: the key has signed it already, it can have no more signatures, or the
            file would be too large.
    """
    archive = read_archive(path, _REQUIRED)
    read_certificate(path)
    return _signed(archive, read_envelope(archive.members[_ENVELOPE]), key)


def _signed(archive: Archive, envelope: Envelope, key: PrivateKey) -> bytes:
    enclosed = archive.members.get(_SIGNERS, b"")
    if key.public.pem in enclosed:
        raise CertificationError("this key has signed the certificate already")
    return archive_bytes(
        {
            **archive.members,
            _ENVELOPE: envelope_bytes(envelope.signed(key.public.hint, key.sign)),
            _SIGNERS: enclosed + key.public.pem,
        }
    )


def read_certificate(path: Path, keys: Sequence[PublicKey] = ()) -> Certificate:
    """Read a certificate, and check that it is unchanged and its signatures are valid.

    Args:
        keys: public keys that must have signed it; `Certificate.lacking` has those that have not.

    Raises:
        RefusedError: the file is not a certificate, was changed after it was made, or cannot be
            read; the error names the cases whose outputs were changed, if known.
        MissingExtraError: it holds public keys, and `cryptography` cannot be imported.
    """
    archive = read_archive(path, _REQUIRED)
    members = archive.members
    envelope = read_envelope(members[_ENVELOPE])
    predicate, digests = read_statement(envelope.payload)
    changed = changed_members(digests, members)
    reasons = [f"{name} is not what the statement says: it was changed" for name in changed]
    reasons += [f"{name} is damaged" for name in archive.damaged if name not in changed]
    cases: tuple[str, ...] = ()
    if not set(changed) & {"outcomes.jsonl"}:
        try:
            outcomes = read_outcomes(members["outcomes.jsonl"], members["outputs.bin"])
            cases = outcomes.changed
        except RefusedError as error:
            reasons += error.reasons
    try:
        signers = _signers(envelope, members.get(_SIGNERS), keys)
    except RefusedError as error:
        reasons += error.reasons
    if cases:
        reasons.append("outputs.bin does not match outcomes.jsonl")
    if reasons:
        raise RefusedError(*map(printable, reasons), cases=cases)
    have_signed = {signer.keyid for signer in signers}
    lacking = tuple(key for key in keys if key.keyid not in have_signed)
    return Certificate(predicate, signers, members, outcomes, lacking)


def _signers(
    envelope: Envelope, enclosed: bytes | None, keys: Sequence[PublicKey]
) -> tuple[Signer, ...]:
    """Return the owners of an envelope's signatures.

    Signatures of unknown keys, and enclosed keys that have signed nothing, are refused.
    """
    known = {key.keyid: (key, True) for key in keys}
    if enclosed is not None:
        try:
            known = {key.keyid: (key, False) for key in public_keys(enclosed)} | known
        except ValueError as error:
            raise RefusedError(f"{_SIGNERS} {error}") from error

    def verified(signature: Signature, message: bytes) -> list[Signer]:
        return [
            Signer(key.keyid, trusted, key.origin)
            for key, trusted in known.values()
            if key.verifies(signature.sig, message)
        ]

    signatures = envelope.checked(verified)
    problems = [
        f"signature {number} of {len(signatures)} is not valid for any given or enclosed key: "
        "the statement was changed, or another key signed it"
        for number, signers in enumerate(signatures, 1)
        if not signers
    ]
    signers = dict.fromkeys(signer for each in signatures for signer in each)
    problems += _unused(known, signers)
    if problems:
        raise RefusedError(*problems)
    return tuple(signers)


def _unused(known: Mapping[str, tuple[PublicKey, bool]], signers: Iterable[Signer]) -> list[str]:
    have_signed = {signer.keyid for signer in signers}
    return [
        f"{_SIGNERS} holds the key {keyid}, which has not signed it"
        for keyid, (_, trusted) in known.items()
        if not trusted and keyid not in have_signed
    ]
