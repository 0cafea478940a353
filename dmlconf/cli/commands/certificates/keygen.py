"""`dmlconf keygen`: generate a key for signing certificates."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dmlconf.certification.keys import new_key_pair
from dmlconf.cli.common.command import Command
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.path_types import FILE
from dmlconf.documents.problems import printable

__all__ = ["command"]


@click.command("keygen", cls=Command, short_help="Generate a key for signing certificates.")
@click.argument("key", type=FILE)
def command(key: Path) -> int:
    """Generate a key for signing certificates in the file KEY, such as vendor.pem.

    Its public half is written next to it, as vendor.pub.pem. Keep KEY secret, and give the public
    half to whoever verifies. They are Ed25519 keys in PEM (PKCS#8 and SubjectPublicKeyInfo), the
    same as OpenSSL generates. No file is overwritten.
    """
    public = new_key_pair(key)
    readers = "by whoever may read its folder" if sys.platform == "win32" else "only by you"
    click.echo(printable(f"{key}: the private key, readable {readers}; keep it secret"))
    click.echo(printable(f"{public}: the public key; give it to whoever verifies"))
    return ExitCode.SUCCESS
