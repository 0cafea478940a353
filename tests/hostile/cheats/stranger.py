"""Ways in which a stranger, who lacks the vendor's key, cheats with certificates.

Each certificate must be refused or must not hold, unless its content is exactly what was signed.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from tests.certification import forging
from tests.certification.forging import taken_apart
from tests.certification.suite import OUTSIDER
from tests.hostile.archives import (
    changed_lines,
    json_bytes,
    packed_zeros,
    restated_member,
    zipped,
)
from tests.hostile.mutation import mutated_bytes, mutated_value

__all__ = ["STRANGER"]

_GROUP_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
"""The order of Ed25519's group; RFC 8032 refuses a signature whose number is not smaller."""


def _bytes_changed(random: Random, content: bytes) -> bytes:
    return mutated_bytes(random, content)


def _member_changed(random: Random, content: bytes) -> bytes:
    """Change bytes of one member, with right checksums."""
    members = forging.members(content)
    name = random.choice(list(members))
    members[name] = mutated_bytes(random, members[name])
    return zipped(members)


def _bit_flipped(random: Random, content: bytes) -> bytes:
    """Flip one bit of an output, with right checksums."""
    members = forging.members(content)
    outputs = bytearray(members["outputs.bin"])
    outputs[random.randrange(len(outputs))] ^= 1 << random.randrange(8)
    return zipped({**members, "outputs.bin": bytes(outputs)})


def _members_swapped(random: Random, content: bytes) -> bytes:
    members = forging.members(content)
    one, other = random.sample(list(members), 2)
    members[one], members[other] = members[other], members[one]
    return zipped(members)


def _member_removed(random: Random, content: bytes) -> bytes:
    members = forging.members(content)
    del members[random.choice(list(members))]
    return zipped(members)


def _member_added(random: Random, content: bytes) -> bytes:
    name = random.choice(("waivers.yaml", "substrate.yaml", "statement.yaml"))
    return zipped({**forging.members(content), name: b"vendor: X\nproduct: Y\n"})


def _envelope_changed(random: Random, content: bytes) -> bytes:
    members = forging.members(content)
    envelope = mutated_value(random, json.loads(members["attestation.json"]), random.choice((1, 2)))
    return zipped({**members, "attestation.json": json_bytes(envelope)})


def _statement_changed(random: Random, content: bytes) -> bytes:
    members = forging.members(content)
    envelope = json.loads(members["attestation.json"])
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement = mutated_value(random, statement, random.choice((1, 2, 4)))
    envelope["payload"] = base64.b64encode(json_bytes(statement)).decode()
    return zipped({**members, "attestation.json": json_bytes(envelope)})


def _log_changed(random: Random, content: bytes) -> bytes:
    """Change the log and its digests, and keep the signature."""
    return changed_lines(random, content, "run.jsonl", restated_member)


def _outcomes_changed(random: Random, content: bytes) -> bytes:
    return changed_lines(random, content, "outcomes.jsonl", restated_member)


def _signed_by_another(random: Random, content: bytes) -> bytes:
    forgery = taken_apart(content)
    if random.random() < 0.5:
        return forgery.content(OUTSIDER)
    name = random.choice(("run.jsonl", "outcomes.jsonl", "outputs.bin"))
    members = forgery.members()
    return forgery.content(OUTSIDER, {**members, name: mutated_bytes(random, members[name])})


def _signature_changed(random: Random, content: bytes) -> bytes:
    members = forging.members(content)
    envelope = json.loads(members["attestation.json"])
    signature = envelope["signatures"][0]
    sig = base64.b64decode(signature["sig"])
    number = int.from_bytes(sig[32:], "little") + _GROUP_ORDER
    choices: list[object] = [
        [],
        [{**signature, "sig": ""}],
        [
            {
                **signature,
                "sig": base64.b64encode(sig[:32] + number.to_bytes(33, "little")[:32]).decode(),
            }
        ],
        [{**signature, "sig": base64.b64encode(bytes(64)).decode()}],
        [{**signature, "sig": base64.b64encode(sig + b"\0").decode()}],
        [signature, {**signature, "sig": base64.b64encode(mutated_bytes(random, sig)).decode()}],
        [signature] * 33,
        None,
    ]
    envelope["signatures"] = random.choice(choices)
    return zipped({**members, "attestation.json": json_bytes(envelope)})


def _type_changed(random: Random, content: bytes) -> bytes:
    members = forging.members(content)
    envelope = json.loads(members["attestation.json"])
    envelope["payloadType"] = random.choice(
        ("", "application/json", "application/vnd.in-toto+json ", None, 7)
    )
    return zipped({**members, "attestation.json": json_bytes(envelope)})


def _challenge_replayed(random: Random, content: bytes) -> bytes:
    forgery = taken_apart(content)
    forgery.predicate["challenge"] = str(random.randrange(1, 1 << 64))
    return forgery.content()


def _zip_trick(random: Random, content: bytes) -> bytes:
    return random.choice(_ZIP_TRICKS)(random, content)


def _bomb(random: Random, content: bytes) -> bytes:
    """Pack up to 256 MiB of zeros into a member, often with a wrong size."""
    members = forging.members(content)
    name = random.choice(list(members))
    packed = packed_zeros(random.choice((1 << 20, 1 << 24, 1 << 28)))
    size = random.choice((10, 1 << 20, 1 << 24, 1 << 28, 0xFFFF_FFFF))
    return zipped(members, raw={name: (packed, size, 0)})


def _deep_json(random: Random, content: bytes) -> bytes:
    members = forging.members(content)
    deep = random.choice(
        (b"[" * 500_000, b'{"a":' * 100_000, b"[" + b"{}," * 300_000, b"9" * 200_000)
    )
    name = random.choice(("attestation.json", "run.jsonl", "outcomes.jsonl"))
    return zipped({**members, name: deep})


def _many_keys(random: Random, content: bytes) -> bytes:
    """Replace the signer's key by thousands of whole or unfinished keys."""
    members = forging.members(content)
    pem = members["signers.pem"]
    line = pem[: pem.index(b"\n") + 1]
    members["signers.pem"] = random.choice((line * 38_000, pem * 9000, pem + line * 30_000))
    return zipped(members)


def _prefixed(random: Random, content: bytes) -> bytes:
    return random.randbytes(random.choice((1, 30, 4096))) + content


def _trailed(random: Random, content: bytes) -> bytes:
    return content + random.randbytes(random.choice((1, 22, 4096)))


def _commented(random: Random, content: bytes) -> bytes:
    comment = random.randbytes(random.choice((1, 22)))
    return content[:-2] + struct.pack("<H", len(comment)) + comment


def _doubled(random: Random, content: bytes) -> bytes:
    """Add a second member of the same name with other content."""
    import io
    import warnings
    import zipfile

    stream = io.BytesIO()
    members = forging.members(content)
    name = random.choice(list(members))
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")
        for other, data in members.items():
            archive.writestr(zipfile.ZipInfo(other), data, zipfile.ZIP_DEFLATED)
        second = mutated_bytes(random, members[name])
        archive.writestr(zipfile.ZipInfo(name), second, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _renamed(random: Random, content: bytes) -> bytes:
    members = forging.members(content)
    name = random.choice(list(members))
    path = random.choice(
        (
            f"../{name}",
            f"/{name}",
            f"..\\{name}",
            f"a/{name}",
            name.upper(),
            f"{name}\0",
            f"./{name}",
        )
    )
    return zipped({path if other == name else other: data for other, data in members.items()})


def _local_header_changed(random: Random, content: bytes) -> bytes:
    starts = [at for at in range(len(content)) if content[at : at + 4] == b"PK\3\4"]
    at = random.choice(starts)
    changed = bytearray(content)
    place = at + random.randrange(4, 30)
    changed[place] ^= 1 << random.randrange(8)
    return bytes(changed)


def _directory_changed(random: Random, content: bytes) -> bytes:
    start = content.index(b"PK\1\2")
    changed = bytearray(content)
    changed[random.randrange(start, len(content))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _gap(random: Random, content: bytes) -> bytes:
    """Put bytes between the members and the directory, with the right offset."""
    start = content.index(b"PK\1\2")
    gap = random.randbytes(random.choice((1, 100)))
    end = bytearray(content[start:])
    end[-6:-2] = struct.pack("<I", start + len(gap))
    return content[:start] + gap + bytes(end)


def _other_writer(random: Random, content: bytes) -> bytes:
    """Write the same members with Python's zipfile, packed by any method."""
    import io
    import zipfile

    methods = (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED)
    stream = io.BytesIO()
    method = random.choice(methods)
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in forging.members(content).items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return stream.getvalue()


def _reordered(random: Random, content: bytes) -> bytes:
    members = list(forging.members(content).items())
    random.shuffle(members)
    return zipped(dict(members))


_ZIP_TRICKS: Final = (
    _prefixed,
    _trailed,
    _commented,
    _doubled,
    _renamed,
    _local_header_changed,
    _directory_changed,
    _gap,
    _other_writer,
    _reordered,
)


STRANGER: Final[Mapping[str, Callable[[Random, bytes], bytes]]] = {
    "bytes of the file": _bytes_changed,
    "bytes of a member": _member_changed,
    "one bit of an output": _bit_flipped,
    "members swapped": _members_swapped,
    "a member removed": _member_removed,
    "a member added": _member_added,
    "values of the envelope": _envelope_changed,
    "values of the statement": _statement_changed,
    "the log, with new digests": _log_changed,
    "the outcomes, with new digests": _outcomes_changed,
    "another key": _signed_by_another,
    "the signature": _signature_changed,
    "the type of the payload": _type_changed,
    "another challenge in the statement": _challenge_replayed,
    "tricks of zip archives": _zip_trick,
    "bombs": _bomb,
    "deep or long JSON": _deep_json,
    "keys without end": _many_keys,
}
