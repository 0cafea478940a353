"""DSSE envelopes: a payload of a known type, and signatures over both.

A payload of one type cannot pass for another, since the type is signed too.

Source: DSSE 1.0.2, `protocol.md` and `envelope.md` of secure-systems-lab/dsse.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from dmlconf.certification.errors import CertificationError, RefusedError
from dmlconf.certification.json_text import canonical_json, parsed_json

__all__ = ["PAYLOAD_TYPE", "Envelope", "Signature", "encoded", "envelope_bytes", "read_envelope"]

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
"""The payload type of in-toto statements."""

MOST_SIGNATURES: Final = 32

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature; `keyid` is an unauthenticated hint, on which no decision relies."""

    keyid: str
    sig: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload with its signatures."""

    payload: bytes
    payload_type: str = PAYLOAD_TYPE
    signatures: tuple[Signature, ...] = ()

    def signed(self, keyid: str, sign: Callable[[bytes], bytes]) -> Envelope:
        """Return the envelope with one more signature.

        Raises:
            CertificationError: it has `MOST_SIGNATURES` signatures already.
        """
        if len(self.signatures) >= MOST_SIGNATURES:
            raise CertificationError(
                f"the certificate has {MOST_SIGNATURES} signatures already, the most that are read"
            )
        signature = Signature(keyid, sign(encoded(self.payload_type, self.payload)))
        return replace(self, signatures=(*self.signatures, signature))

    def checked(
        self, verify: Callable[[Signature, bytes], Sequence[_Result]]
    ) -> list[Sequence[_Result]]:
        """Return the result of `verify` for each signature.

        Args:
            verify: called with a signature and the message that must have been signed.
        """
        message = encoded(self.payload_type, self.payload)
        return [verify(signature, message) for signature in self.signatures]


def encoded(payload_type: str, payload: bytes) -> bytes:
    """Return the message that is signed, DSSE's pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def envelope_bytes(envelope: Envelope) -> bytes:
    """Return an envelope as JSON."""
    signatures = [
        {"keyid": signature.keyid, "sig": base64.b64encode(signature.sig).decode()}
        for signature in envelope.signatures
    ]
    data = {
        "payload": base64.b64encode(envelope.payload).decode(),
        "payloadType": envelope.payload_type,
        "signatures": signatures,
    }
    return canonical_json(data) + b"\n"


def read_envelope(content: bytes) -> Envelope:
    """Read an envelope; as DSSE requires, unknown fields are ignored.

    Raises:
        RefusedError: it is not an envelope of type `PAYLOAD_TYPE`, or has too many signatures.
    """
    data = parsed_json(content, "attestation.json")
    if not isinstance(data, dict) or not isinstance(data.get("signatures"), list):
        raise RefusedError("attestation.json is not a DSSE envelope: it lacks its signatures")
    if data.get("payloadType") != PAYLOAD_TYPE:
        payload_type = json.dumps(data.get("payloadType"))[:80]
        raise RefusedError(
            f"attestation.json holds a payload of type {payload_type}, not {PAYLOAD_TYPE}"
        )
    signatures = data["signatures"]
    if len(signatures) > MOST_SIGNATURES:
        raise RefusedError(f"attestation.json has more than {MOST_SIGNATURES} signatures")
    return Envelope(
        _decoded(data.get("payload"), "payload"), PAYLOAD_TYPE, tuple(map(_signature, signatures))
    )


def _signature(data: Any) -> Signature:
    keyid = data.get("keyid", "") if isinstance(data, dict) else None
    if not isinstance(keyid, str):
        raise RefusedError("attestation.json has a signature that is not in DSSE's form")
    return Signature(keyid, _decoded(data.get("sig"), "sig"))


def _decoded(text: Any, field: str) -> bytes:
    """Decode Base64, standard or URL-safe: DSSE allows either."""
    if not isinstance(text, str):
        raise RefusedError(f"attestation.json: `{field}` is not Base64 text")
    try:
        ascii_text = text.encode("ascii").replace(b"-", b"+").replace(b"_", b"/")
        return base64.b64decode(ascii_text, validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise RefusedError(f"attestation.json: `{field}` is not Base64") from error
