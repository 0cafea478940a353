"""Serve a history's pages over HTTP until Ctrl-C; `application` answers the requests."""

from __future__ import annotations

import os
import re
import secrets
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import click

from dmlconf.cli.output.console import say
from dmlconf.documents.problems import printable
from dmlconf.extras import install_command

if TYPE_CHECKING:
    from dmlconf.cli.server.application import Application

__all__ = ["chosen_token", "serve"]

_VARIABLE: Final = "DMLCONF_HISTORY_TOKEN"
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{16,200}")


def chosen_token() -> str:
    """Return the token in `DMLCONF_HISTORY_TOKEN`, or a new one of 192 random bits.

    Raises:
        click.UsageError: the token in the variable has a wrong length or character.
    """
    named = os.environ.get(_VARIABLE)
    if named is None:
        return secrets.token_urlsafe(24)
    if not _TOKEN.fullmatch(named):  # The message does not repeat what is secret.
        raise click.UsageError(
            f"{_VARIABLE} must have 16 to 200 characters of A-Z, a-z, 0-9, - and _"
        )
    return named


def serve(application: Application, host: str, port: int, token: str) -> None:
    """Answer requests until Ctrl-C.

    Args:
        port: 0 for any free port.
        token: the secret that the printed address contains.

    Raises:
        click.UsageError: the server cannot listen there, or its package is missing.
    """
    try:
        from waitress import create_server
    except ModuleNotFoundError as error:
        message = f"history serve needs the package waitress: {install_command('history')}"
        raise click.UsageError(message) from error
    try:
        server = create_server(application, host=host, port=port, ident="dmlconf", threads=4)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"{host}, port {port}: {reason}; choose others with --host and --port"
        raise click.UsageError(printable(message)) from error
    addresses = getattr(server, "effective_listen", None)  # A name may have several.
    for name, actual in addresses or [(server.effective_host, server.effective_port)]:
        click.echo(f"http://{_reachable(name)}:{actual}/?token={token}")
        if not ip_address(name.partition("%")[0]).is_loopback:
            say("Others can reach this address. HTTP is not encrypted, so whoever sees the traffic")
            say("can read the pages and the token: outside a network of your own, put a server")
            say("with TLS before it.")
    say("Ctrl-C ends it")
    server.run()  # Returns at Ctrl-C.
    server.close()


def _reachable(host: str) -> str:
    """Return the host of a printed address: this machine's name for 0.0.0.0, [::1] for ::1."""
    if ip_address(host.partition("%")[0]).is_unspecified:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
