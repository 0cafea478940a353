"""Keys for certificates are made and read, work with OpenSSL, and are refused if weak.

The tested code is in `dmlconf/certification/keys.py`, `dmlconf/certification/errors.py` and
`dmlconf/cli/commands/certificates/keygen.py`.
"""

from __future__ import annotations

import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dmlconf.certification.errors import CertificationError
from dmlconf.certification.keys import (
    new_key_pair,
    public_key,
    public_keys,
    read_private_key,
    read_public_keys,
)
from dmlconf.cli.commands.certificates import keygen
from tests.cli.process import dmlconf, dmlconf_here

SMALL_ORDER = (
    bytes([1]) + bytes(31),  # The identity.
    bytes([1]) + bytes(30) + b"\x80",  # The identity in another encoding.
    bytes(32),  # Order 4: four times the point is the identity.
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),  # Order 8.
)
"""Encoded points of the order 1, 4 and 8."""


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


def test_new_key_pair_writes_protected_matching_keys(
    tmp_path: Path,
) -> None:
    public = new_key_pair(tmp_path / "key.pem")
    private = tmp_path / "key.pem"
    assert private.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert public == tmp_path / "key.pub.pem"
    if sys.platform != "win32":
        assert stat.S_IMODE(private.stat().st_mode) == 0o600
    signature = read_private_key(private).sign(b"message")
    assert read_public_keys(public)[0].verifies(signature, b"message")
    assert not read_public_keys(public)[0].verifies(signature, b"another message")


def test_keygen_overwrites_no_file(tmp_path: Path) -> None:
    for name in ("key.pem", "key.pub.pem"):
        file = tmp_path / name
        file.write_text("precious", encoding="utf-8")
        done = dmlconf_here(tmp_path, "keygen", "key.pem")
        assert done.returncode == 2
        assert "never overwritten" in done.stderr
        assert [path.read_text("utf-8") for path in tmp_path.glob("*.pem")] == ["precious"]
        file.unlink()


@pytest.mark.parametrize(
    ("platform", "readers"),
    [("linux", "only by you"), ("win32", "by whoever may read its folder")],
)
def test_keygen_says_who_can_read_the_private_key(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    platform: str,
    readers: str,
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert keygen.command.callback is not None
    keygen.command.callback(tmp_path / "key.pem")
    assert f"key.pem: the private key, readable {readers};" in capsys.readouterr().out


def test_keygen_refuses_an_empty_path(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "keygen", "")
    assert done.returncode == 2
    assert "the path is empty" in done.stderr
    assert not list(tmp_path.iterdir())


def test_openssl_takes_keys_of_dmlconf(tmp_path: Path) -> None:
    new_key_pair(tmp_path / "key.pem")
    openssl(tmp_path, "pkey", "-in", "key.pem", "-pubout", "-out", "again.pem")
    assert (tmp_path / "again.pem").read_bytes() == (tmp_path / "key.pub.pem").read_bytes()
    (tmp_path / "message").write_bytes(b"message")
    signature = read_private_key(tmp_path / "key.pem").sign(b"message")
    (tmp_path / "signature").write_bytes(signature)
    openssl(
        tmp_path,
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        "key.pub.pem",
        "-rawin",
        "-in",
        "message",
        "-sigfile",
        "signature",
    )


def test_dmlconf_takes_keys_of_openssl(tmp_path: Path) -> None:
    openssl(tmp_path, "genpkey", "-algorithm", "ed25519", "-out", "key.pem")
    openssl(tmp_path, "pkey", "-in", "key.pem", "-pubout", "-out", "key.pub.pem")
    private = read_private_key(tmp_path / "key.pem")
    public = read_public_keys(tmp_path / "key.pub.pem")[0]
    assert public.keyid == private.public.keyid
    assert public.verifies(private.sign(b"message"), b"message")


@pytest.mark.slow
def test_an_unsuitable_key_file_is_explained(tmp_path: Path) -> None:
    new_key_pair(tmp_path / "key.pem")
    openssl(tmp_path, "genpkey", "-algorithm", "rsa", "-out", "rsa.pem")
    openssl(
        tmp_path,
        "pkey",
        "-in",
        "key.pem",
        "-aes256",
        "-passout",
        "pass:secret",
        "-out",
        "encrypted.pem",
    )
    (tmp_path / "text.pem").write_text("no key", encoding="utf-8")
    for name, message in {
        "rsa.pem": "not Ed25519",
        "encrypted.pem": "is encrypted; `openssl pkey",
        "text.pem": "is not a private key",
        "key.pub.pem": "is not a private key",
        "missing.pem": "cannot be read: No such file",
    }.items():
        with pytest.raises(CertificationError, match=message):
            read_private_key(tmp_path / name)
    for name, message in {
        "key.pem": "is a private key; `openssl pkey",
        "text.pem": "is not a public key",
    }.items():
        with pytest.raises(CertificationError, match=message):
            read_public_keys(tmp_path / name)


def test_public_keys_of_small_order_are_refused(tmp_path: Path) -> None:
    # The signature is the identity and 0. It is valid if hash * key is the identity.
    message, signature = b"anything", bytes([1]) + bytes(63)
    accepted = 0
    for point in SMALL_ORDER:
        key = Ed25519PublicKey.from_public_bytes(point)
        with suppress(InvalidSignature):
            key.verify(signature, message)
            accepted += 1
        pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        with pytest.raises(ValueError, match="anybody can sign"):
            public_key(pem)
    assert accepted  # The library accepts such a signature.


def test_a_text_may_hold_two_keys_and_nothing_else(tmp_path: Path) -> None:
    pems = [new_key_pair(tmp_path / f"{name}.pem").read_bytes() for name in "ab"]
    assert [key.pem for key in public_keys(b"".join(pems))] == pems
    with pytest.raises(ValueError, match="more than public keys"):
        list(public_keys(pems[0] + b"#!/bin/sh\n"))


def test_unended_or_too_many_keys_are_refused_quickly(tmp_path: Path) -> None:
    new_key_pair(tmp_path / "key.pem")
    pem = (tmp_path / "key.pub.pem").read_bytes()
    began = process_time()
    with pytest.raises(ValueError, match="more than public keys"):
        list(public_keys(b"-----BEGIN PUBLIC KEY-----\n" * 5_000))
    with pytest.raises(ValueError, match="more than 32 keys"):
        list(public_keys(pem * 33))
    # A quadratic search would take several seconds.
    assert process_time() - began < 2


def test_without_the_extra_certify_keygen_says_what_to_install(tmp_path: Path) -> None:
    program = "raise ModuleNotFoundError('none')"
    (tmp_path / "cryptography.py").write_text(program, encoding="utf-8")
    done = dmlconf(tmp_path, "keygen", "key.pem", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert "[certify]'" in done.stderr
    # dmlconf is on no package index.
    assert "dmlconf[certify]" not in done.stderr
    assert not list(tmp_path.glob("*.pem"))


def test_keygen_explains_an_extra_that_does_not_load(
    tmp_path: Path,
) -> None:
    program = "raise ImportError('DLL load failed')"
    (tmp_path / "cryptography.py").write_text(program, encoding="utf-8")
    done = dmlconf(tmp_path, "keygen", "key.pem", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert "it does not load here (DLL load failed)" in " ".join(done.stderr.split())
    assert "install" not in done.stderr
