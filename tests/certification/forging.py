"""Take certificates apart, change them and put them together again, as a cheating vendor would."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dmlconf.certification.archive import archive_bytes
from tests.certification.suite import VENDOR, verify

__all__ = ["Forgery", "Json", "forge", "members", "taken_apart", "verify_forged"]

Json = dict[str, Any]

_PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"


@dataclass
class Forgery:
    """The parts of a certificate.

    Attributes:
        statement: the statement, as JSON.
        log: the records of run.jsonl.
        outcomes: the records of outcomes.jsonl.
        blobs: the elements in outputs.bin, by their SHA-256.
        others: the other members, such as signers.pem.
        signatures: the signatures of the envelope.
    """

    statement: Json
    log: list[Json]
    outcomes: list[Json]
    blobs: dict[str, bytes]
    others: dict[str, bytes]
    signatures: list[Json]

    @property
    def predicate(self) -> Json:
        predicate: Json = self.statement["predicate"]
        return predicate

    @property
    def verdicts(self) -> list[Json]:
        return self.log[1:-1]

    def line(self, case: str) -> Json:
        """Return the outcome of the case whose identifier ends with `case`."""
        return next(line for line in self.outcomes[1:] if line["case"].endswith(case))

    def elements(self, output: Json) -> np.ndarray[Any, Any]:
        """Return a flat copy of the stored elements of an output."""
        digest: str = output["stored"] if "stored" in output else output["sha256"]
        dtype = np.dtype(output["type"].lower()).newbyteorder("<")
        return np.frombuffer(self.blobs[digest], dtype).copy()

    def store(self, output: Json, elements: np.ndarray[Any, Any]) -> None:
        """Replace the elements of an output, and correct their digest."""
        content = elements.tobytes()
        digest = sha256(content).hexdigest()
        self.blobs[digest] = content
        output["stored" if "stored" in output else "sha256"] = digest

    def remove(self, case: str, *, of_log: bool = True, of_outcomes: bool = True) -> None:
        """Remove a case from the log, whose counts are corrected, and from the outcomes."""
        if of_outcomes:
            self.outcomes[1:] = [line for line in self.outcomes[1:] if line["case"] != case]
        if of_log:
            self.log[1:-1] = [line for line in self.verdicts if line["case"] != case]
            self.log[0]["selected"] = len(self.verdicts)
            self.count_again()

    def count_again(self) -> None:
        """Correct the places and the footer of the log."""
        summary = dict.fromkeys(self.log[-1]["summary"], 0)
        for place, line in enumerate(self.verdicts):
            line["place"] = place
            summary[line["status"]] = summary.get(line["status"], 0) + 1
        self.log[-1]["summary"] = summary

    def members(self) -> dict[str, bytes]:
        """Return the signed members of the archive, by name."""
        parts, known = [], set()
        for line in self.outcomes[1:]:
            for _, output in sorted(line.get("outputs", {}).items()):
                stored = output.get("stored", output["sha256"])
                if stored not in known:
                    known.add(stored)
                    parts.append(self.blobs[stored])
        return {
            "run.jsonl": b"".join(map(_line, self.log)),
            "outcomes.jsonl": b"".join(map(_line, self.outcomes)),
            "outputs.bin": b"".join(parts),
            **{name: content for name, content in self.others.items() if name != "signers.pem"},
        }

    def content(
        self, key: Ed25519PrivateKey | None = None, members: Mapping[str, bytes] | None = None
    ) -> bytes:
        """Return the content of the certificate's file, with correct digests.

        Args:
            key: the key that signs again and is enclosed; without it the old signatures stay.
            members: what replaces the members made from these parts.
        """
        signed = self.members() if members is None else dict(members)
        self.statement["subject"] = [
            {"name": name, "digest": {"sha256": sha256(content).hexdigest()}}
            for name, content in sorted(signed.items())
        ]
        payload = json.dumps(self.statement).encode()
        enclosed = {name: pem for name, pem in self.others.items() if name == "signers.pem"}
        if key is not None:
            message = b"DSSEv1 %d %b %d %b" % (
                len(_PAYLOAD_TYPE),
                _PAYLOAD_TYPE.encode(),
                len(payload),
                payload,
            )
            self.signatures = [{"keyid": "", "sig": base64.b64encode(key.sign(message)).decode()}]
            pem = key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            enclosed = {"signers.pem": pem}
        envelope = {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": _PAYLOAD_TYPE,
            "signatures": self.signatures,
        }
        attestation = json.dumps(envelope).encode()
        return archive_bytes({**signed, **enclosed, "attestation.json": attestation})


def _line(record: Json) -> bytes:
    return json.dumps(record).encode() + b"\n"


def members(archive: Path | bytes) -> dict[str, bytes]:
    """Return the members of an archive by name, as Python's zipfile reads them."""
    with zipfile.ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def forge(folder: Path, change: Callable[[Forgery], object]) -> str:
    """Change the certificate of a folder, sign it as the vendor, and return its new name."""
    forgery = taken_apart(folder / "it.dmlcert")
    change(forgery)
    (folder / "forged.dmlcert").write_bytes(forgery.content(VENDOR))
    return "forged.dmlcert"


def verify_forged(
    folder: Path, change: Callable[[Forgery], object], *options: str
) -> CompletedProcess[str]:
    """Change the certificate of a folder, sign it as the vendor, and verify it."""
    return verify(folder, "--key", "vendor.pub.pem", *options, file=forge(folder, change))


def taken_apart(certificate: Path | bytes) -> Forgery:
    parts = members(certificate)
    envelope = json.loads(parts.pop("attestation.json"))
    log = [json.loads(line) for line in parts.pop("run.jsonl").splitlines()]
    outcomes = [json.loads(line) for line in parts.pop("outcomes.jsonl").splitlines()]
    outputs, blobs, end = parts.pop("outputs.bin"), {}, 0
    for line in outcomes[1:]:
        for _, output in sorted(line.get("outputs", {}).items()):
            stored = output.get("stored", output["sha256"])
            if stored not in blobs:
                size = np.dtype(output["type"].lower()).itemsize
                size *= output.get("sample", int(np.prod(output["sizes"])))
                blobs[stored] = outputs[end : end + size]
                end += size
    assert end == len(outputs)
    statement = json.loads(base64.b64decode(envelope["payload"]))
    return Forgery(statement, log, outcomes, blobs, parts, envelope["signatures"])
