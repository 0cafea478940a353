"""Envelopes and statements of certificates follow DSSE and in-toto.

The tested code is in `dmlconf/certification/envelope.py`, `dmlconf/certification/statement.py`,
`dmlconf/certification/certificate.py` and `dmlconf/certification/json_text.py`.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import in_toto_attestation.v1.statement_pb2 as statement_pb
import pytest
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope as SslibEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from dmlconf.certification.archive import archive_bytes
from dmlconf.certification.envelope import (
    MOST_SIGNATURES,
    PAYLOAD_TYPE,
    Envelope,
    Signature,
    encoded,
    envelope_bytes,
    read_envelope,
)
from dmlconf.certification.errors import CertificationError, RefusedError
from tests.certification.forging import members, taken_apart
from tests.certification.suite import OUTSIDER, VENDOR, certify, printed_text, verify, write_suite


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the suite and `it.dmlcert`, signed by the vendor."""
    folder = write_suite(tmp_path_factory.mktemp("envelope"))
    certify(folder, "--key", "vendor.pem", "--challenge", str(2**64 - 1))
    return folder


def attestation(folder: Path) -> bytes:
    return members(folder / "it.dmlcert")["attestation.json"]


def test_the_example_of_dsse_is_encoded() -> None:
    # The example is from DSSE's protocol.md.
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert encoded("http://example.com/HelloWorld", b"hello world") == expected


def test_securesystemslib_accepts_only_the_signers_key(
    folder: Path,
) -> None:
    data = json.loads(attestation(folder))
    keyid = data["signatures"][0]["keyid"]
    envelope = SslibEnvelope.from_dict(data)
    vendor = SSlibKey.from_crypto(VENDOR.public_key())
    assert vendor.keyid == keyid
    assert envelope.verify([vendor], 1) == {keyid: vendor}
    outsider = SSlibKey.from_crypto(OUTSIDER.public_key(), keyid=keyid)
    with pytest.raises(VerificationError):
        envelope.verify([outsider], 1)


def test_dmlconf_verifies_what_securesystemslib_signed(folder: Path) -> None:
    payload = base64.b64decode(json.loads(attestation(folder))["payload"])
    envelope = SslibEnvelope(payload, PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(VENDOR))
    parts = {
        **members(folder / "it.dmlcert"),
        "attestation.json": json.dumps(envelope.to_dict()).encode(),
    }
    del parts["signers.pem"]
    (folder / "other.dmlcert").write_bytes(archive_bytes(parts))
    assert verify(folder, "--key", "vendor.pub.pem", file="other.dmlcert").returncode == 0
    assert verify(folder, "--key", "outsider.pub.pem", file="other.dmlcert").returncode == 3
    # The signer's key is not enclosed.
    done = verify(folder, file="other.dmlcert")
    assert done.returncode == 3
    assert "is not valid for any given or enclosed key" in printed_text(done)


def test_in_toto_accepts_the_statement(folder: Path) -> None:
    payload = base64.b64decode(json.loads(attestation(folder))["payload"])
    parsed = json_format.Parse(payload, statement_pb.Statement())
    Statement.copy_from_pb(parsed).validate()
    subjects = {subject.name: dict(subject.digest) for subject in parsed.subject}
    assert subjects.keys() == {"run.jsonl", "outcomes.jsonl", "outputs.bin"}
    # Readers that keep numbers as doubles must not change the challenge.
    assert parsed.predicate["challenge"] == str(2**64 - 1)


def test_dmlconf_reads_a_statement_that_in_toto_wrote(folder: Path) -> None:
    payload = base64.b64decode(json.loads(attestation(folder))["payload"])
    parsed = json_format.Parse(payload, statement_pb.Statement())
    text = json_format.MessageToJson(parsed)
    assert '"format": 1.0' in text  # in-toto keeps numbers as doubles, and dmlconf wrote 1.
    forgery = taken_apart(folder / "it.dmlcert")
    forgery.statement = json.loads(text)
    (folder / "rewritten.dmlcert").write_bytes(forgery.content(VENDOR))
    done = verify(folder, "--key", "vendor.pub.pem", file="rewritten.dmlcert")
    assert done.returncode == 0, done.stdout


def test_envelopes_may_have_url_safe_base64_and_unknown_fields() -> None:
    payload = bytes(range(256))
    data = {
        "payload": base64.urlsafe_b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"sig": base64.urlsafe_b64encode(payload).decode(), "more": 1}],
        "more": [],
    }
    envelope = read_envelope(json.dumps(data).encode())
    assert envelope == Envelope(payload, PAYLOAD_TYPE, (Signature("", payload),))
    assert read_envelope(envelope_bytes(envelope)) == envelope


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"payloadType": "text/plain"}, "a payload of type"),
        ({"payload": "Y*Q=="}, "not Base64"),  # Without the asterisk it is Base64 of `a`.
        ({"payload": None}, "not Base64 text"),
        ({"signatures": None}, "not a DSSE envelope"),
        ({"signatures": [{"keyid": 1, "sig": ""}]}, "a signature that is not in DSSE's form"),
        ({"signatures": [{"sig": ""}] * (MOST_SIGNATURES + 1)}, "more than 32 signatures"),
    ],
)
def test_json_that_is_no_envelope_is_refused(change: dict[str, object], message: str) -> None:
    data = {"payload": "", "payloadType": PAYLOAD_TYPE, "signatures": [], **change}
    with pytest.raises(RefusedError, match=message):
        read_envelope(json.dumps(data).encode())


def test_an_envelope_with_a_duplicate_key_is_refused() -> None:
    text = b'{"payload": "", "payload": "AA==", "payloadType": "x", "signatures": []}'
    with pytest.raises(RefusedError, match="duplicate key"):
        read_envelope(text)


def test_a_full_envelope_is_read_but_not_signed() -> None:
    signature = Signature("", b"signature")
    full = Envelope(b"payload", signatures=(signature,) * MOST_SIGNATURES)
    assert len(read_envelope(envelope_bytes(full)).signatures) == MOST_SIGNATURES
    with pytest.raises(CertificationError, match="32 signatures already"):
        full.signed("", lambda message: message)
