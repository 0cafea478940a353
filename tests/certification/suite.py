"""A small suite, its profile and keys, and functions that make and verify certificates."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.cli.process import dmlconf_here

__all__ = [
    "BACKEND",
    "KEYS",
    "OUTSIDER",
    "VENDOR",
    "arguments",
    "certify",
    "printed_text",
    "verify",
    "write_suite",
]

BACKEND: Final = "faulty:level=6_4"
"""A backend without a fault, which passes all cases of the suite."""

SUITE: Final = """
operator: TILE
cases:
  - name: stated
    desc: &tile
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
  - name: stated-again
    desc: *tile
    expect: {OutputTensor: [1, 2, 1, 2]}
  - matrix: {DataType: [FLOAT32, FLOAT16, UINT32, INT8], Count: [5, 6]}
    desc:
      InputTensor:
        {Sizes: "=(Count,)", DataType: =DataType, fill: {integers: {low: 1, high: 100, seed: 3}}}
      OutputTensor: {Sizes: "=(Count * 2,)", DataType: =DataType}
      Repeats: [2]
  - name: large
    desc:
      InputTensor: {Sizes: [20000], DataType: FLOAT32, fill: {uniform: {low: -1, high: 1, seed: 5}}}
      OutputTensor: {Sizes: [40000], DataType: FLOAT32}
      Repeats: [2]
  - name: invalid
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32}
      OutputTensor: {Sizes: [5], DataType: FLOAT32}
      Repeats: [2]
    expect: {rejected: E_INVALIDARG, constraint: output-sizes}
"""
"""12 cases; GEMM has two more."""

GEMM: Final = """
operator: GEMM
cases:
  - matrix: {Seed: [7, 8]}
    desc:
      ATensor: &tensor
        Sizes: [1, 1, 4, 4]
        DataType: FLOAT32
        fill: {uniform: {low: 1, high: 2, seed: =Seed}}
      BTensor: *tensor
      OutputTensor: {Sizes: [1, 1, 4, 4], DataType: FLOAT32}
      TransA: NONE
      TransB: NONE
      Alpha: 1
      Beta: 0
"""

PROFILE: Final = """
format: 1
profile: small
extends: base
feature_level: 6_4
"""
"""A profile that requires all cases of the suite."""

KEYS: Final = {"vendor": b"v" * 32, "second": b"s" * 32, "outsider": b"o" * 32}
"""The 32 bytes of each private key, by its name."""

VENDOR: Final = Ed25519PrivateKey.from_private_bytes(KEYS["vendor"])
OUTSIDER: Final = Ed25519PrivateKey.from_private_bytes(KEYS["outsider"])

_ALLOW_TEST_BACKENDS: Final = ("--allow-backend", "faulty", "--allow-backend", "numpy")


def write_suite(folder: Path) -> Path:
    """Write the suite, the profile and the keys NAME.pem and NAME.pub.pem into a folder."""
    cases = folder / "suite"
    cases.mkdir(parents=True)
    (cases / "matrix.yaml").write_text(SUITE, encoding="utf-8")
    (cases / "gemm").mkdir()
    (cases / "gemm" / "matrix.yaml").write_text(GEMM, encoding="utf-8")
    (folder / "small.yaml").write_text(PROFILE, encoding="utf-8")
    for name, seed in KEYS.items():
        key = Ed25519PrivateKey.from_private_bytes(seed)
        (folder / f"{name}.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        (folder / f"{name}.pub.pem").write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
    return folder


def arguments(*more: str, backend: str = BACKEND) -> list[str]:
    return ["certify", "suite", "-b", backend, "--profile", "small.yaml", "-q", *more]


def certify(folder: Path, *more: str, backend: str = BACKEND) -> Path:
    """Certify a backend in a folder of `write_suite`; return the path of it.dmlcert."""
    done = dmlconf_here(folder, *arguments("-o", "it.dmlcert", *more, backend=backend))
    assert done.returncode == 0, done.stderr
    return folder / "it.dmlcert"


def verify(folder: Path, *more: str | Path, file: str = "it.dmlcert") -> CompletedProcess[str]:
    """Verify a certificate in a folder of `write_suite`; allow `faulty` and `numpy`.

    The exit code is 0 if the certificate holds, 1 if it does not, and 3 if it is refused.
    """
    options = ("--profile", "small.yaml", "-q", *_ALLOW_TEST_BACKENDS)
    return dmlconf_here(folder, "verify", file, "suite", *options, *more)


def printed_text(done: CompletedProcess[str]) -> str:
    return " ".join(done.stdout.split())
