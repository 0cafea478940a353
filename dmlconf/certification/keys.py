"""Ed25519 keys in PEM files: PKCS#8 for private ones, SubjectPublicKeyInfo for public ones.

Functions that need the package `cryptography` raise `MissingExtraError` without it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dmlconf.certification.errors import CertificationError, MissingExtraError
from dmlconf.certification.json_text import canonical_json
from dmlconf.documents.files import UnreadableFileError, make_folders, read_bytes
from dmlconf.documents.problems import printable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

__all__ = [
    "PrivateKey",
    "PublicKey",
    "new_key_pair",
    "public_key",
    "public_keys",
    "read_private_key",
    "read_public_keys",
]

_LARGEST_KEY_BYTES: Final = 1 << 16
MOST_KEYS: Final = 32
"""The most public keys in a certificate or in a user's file."""

_SMALL_ORDER: Final = frozenset(
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
"""Points of order 1, 2, 4 and 8 without their sign, and two non-reduced encodings of them.

Source: `ge25519_has_small_order` of libsodium.
"""

# No hyphen is allowed between the lines, so that each byte is scanned once.
_PUBLIC: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----\n[^-]*\n-----END PUBLIC KEY-----\n")


_KEYS: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----")
"""A public key in a user's file, with any line ends and any text around it."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key.

    Attributes:
        pem: SubjectPublicKeyInfo as PEM.
        keyid: SHA-256 of the DER form, in hexadecimal.
        origin: the user's file with the key; empty for a key in a certificate.
    """

    pem: bytes
    keyid: str
    _key: Ed25519PublicKey
    origin: str = ""

    @property
    def hint(self) -> str:
        """The identifier that `securesystemslib` computes of this key, for DSSE's `keyid`.

        The library tries only keys with the signature's identifier.
        """
        public = {"public": self._key.public_bytes_raw().hex()}
        key = {"keytype": "ed25519", "scheme": "ed25519", "keyval": public}
        return sha256(canonical_json(key)).hexdigest()

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Return whether a signature of a message was made with the private half of this key."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key, and its public half."""

    public: PublicKey
    _key: Ed25519PrivateKey

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message, 64 bytes."""
        return self._key.sign(message)


def _public(key: Ed25519PublicKey) -> PublicKey:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(pem, sha256(der).hexdigest(), key)


def read_private_key(path: Path) -> PrivateKey:
    """Read a private key.

    Raises:
        CertificationError: the file cannot be read, is encrypted, or is not a private Ed25519 key.
    """
    serialization, ed25519 = _library()
    content = _content(path)
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except TypeError as error:
        message = "is encrypted; `openssl pkey -in FILE -out OTHER` decrypts it"
        raise CertificationError(printable(f"{path} {message}")) from error
    except Exception as error:  # The types depend on the library's version.
        message = "is not a private key: it must be PKCS#8 in PEM, as `dmlconf keygen` writes it"
        raise CertificationError(printable(f"{path} {message}")) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise CertificationError(printable(f"{path} is a private key, but not Ed25519"))
    return PrivateKey(_public(key.public_key()), key)


def read_public_keys(path: Path) -> tuple[PublicKey, ...]:
    """Read the public keys in a file; text around them is ignored.

    Raises:
        CertificationError: the file cannot be read, contains `PRIVATE KEY`, or has no key, more
            than `MOST_KEYS`, another kind of PEM block, or a key that `public_key` refuses.
    """
    _library()
    content = _content(path)
    if b"PRIVATE KEY" in content:
        message = "is a private key; `openssl pkey -in FILE -pubout` gives the public one"
        raise CertificationError(printable(f"{path} {message}"))
    texts = _KEYS.findall(content) or [content]  # Without a key, parsing all raises an error.
    if content.count(b"-----BEGIN ") > len(texts):
        raise CertificationError(printable(f"{path} has more than public keys in PEM"))
    if len(texts) > MOST_KEYS:
        raise CertificationError(printable(f"{path} has more than {MOST_KEYS} keys"))
    try:
        return tuple(replace(public_key(text), origin=str(path)) for text in texts)
    except ValueError as error:
        raise CertificationError(printable(f"{path} {error}")) from error


def public_key(pem: bytes) -> PublicKey:
    """Return the public key that a PEM text holds.

    Raises:
        ValueError: it holds no public Ed25519 key, or one under which anybody can sign.
    """
    serialization, ed25519 = _library()
    try:
        key = serialization.load_pem_public_key(pem)
    except Exception as error:  # The types depend on the library's version.
        raise ValueError("is not a public key in PEM") from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise ValueError("is a public key, but not Ed25519")
    if _has_small_order(key.public_bytes_raw()):
        raise ValueError("is a key under which anybody can sign: its point is of small order")
    return _public(key)


def _has_small_order(point: bytes) -> bool:
    """Return whether a public key is a point P with 8 P = 0.

    A signature for such a key needs no private key, and holds for many messages.
    """
    return bytes([*point[:-1], point[-1] & 0x7F]) in _SMALL_ORDER


def public_keys(pem: bytes) -> Iterator[PublicKey]:
    """Yield the public keys in a PEM text, in order.

    Raises:
        ValueError: it holds anything else, more than `MOST_KEYS` keys, or a key that `public_key`
            refuses.
    """
    if _PUBLIC.sub(b"", pem):
        raise ValueError("has more than public keys in PEM")
    if sum(1 for _ in _PUBLIC.finditer(pem)) > MOST_KEYS:
        raise ValueError(f"has more than {MOST_KEYS} keys")
    for match in _PUBLIC.finditer(pem):
        yield public_key(match[0])


def new_key_pair(path: Path) -> Path:
    """Write a new private key and its public half, and return the path of the public half.

    Only its owner can read the private key; on Windows, the folder decides who can. Missing folders
    are made.

    Args:
        path: the path of the private key. For KEY.pem, the public half is KEY.pub.pem.

    Raises:
        CertificationError: a file exists already, or cannot be written, or the path names no file.
    """
    if not path.name:
        raise CertificationError(f"{path} is a folder; name a file for the private key")
    serialization, ed25519 = _library()
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public_path = path.with_name(f"{path.stem}.pub{path.suffix}")
    for file in (path, public_path):
        if os.path.lexists(file):
            message = f"{file} exists already; keys are never overwritten: choose another name"
            raise CertificationError(printable(message))
    try:
        make_folders(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    _write_new(path, private, 0o600)
    _write_new(public_path, _public(key.public_key()).pem, 0o644)
    return public_path


def _write_new(path: Path, content: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags, mode), "wb") as stream:
            stream.write(content)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> CertificationError:
    reason = error.strerror or error
    return CertificationError(printable(f"{path} cannot be written: {reason}"))


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path, _LARGEST_KEY_BYTES)
    except UnreadableFileError as error:
        raise CertificationError(printable(f"{path} {error}")) from error


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtraError(error) from error
    return serialization, ed25519
