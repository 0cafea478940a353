"""`dmlconf sign`: sign a certificate, for example on another machine than the tested one."""

from __future__ import annotations

from pathlib import Path

import click

from dmlconf.certification.certificate import signed
from dmlconf.certification.errors import RefusedError
from dmlconf.certification.keys import read_private_key
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.path_types import ANY_PATH
from dmlconf.cli.output.files import replaced
from dmlconf.documents.problems import printable
from dmlconf.documents.recognition import CERTIFICATE

__all__ = ["command"]


@click.command("sign", cls=Command, short_help="Add a signature to a certificate.")
@click.argument("file", type=ANY_PATH)
@option(
    "--key",
    required=True,
    metavar="KEY.pem",
    type=ANY_PATH,
    help="The private key to sign with.",
)
def command(file: Path, key: Path) -> int:
    """Add a signature to the certificate FILE.

    Several parties may sign one certificate. A file that is not a certificate, or was changed after
    it was made, is not signed: exit code 3.
    """
    private = read_private_key(key)
    try:
        content = signed(file, private)
    except RefusedError as error:
        raise error.of(file) from error
    replaced(file, content, "FILE", own=CERTIFICATE)
    click.echo(printable(f"{file}: signed by {private.public.keyid}"))
    return ExitCode.SUCCESS
