"""The entry point of `dmlconf`: find and run the command, and turn errors into exit codes."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Final

import click

from dmlconf import __version__
from dmlconf.backends.process_start import INTERRUPTS
from dmlconf.cli.common.command_table import COMMAND_GROUPS, COMMAND_NAMES, command_module
from dmlconf.cli.common.exit_codes import ExitCode, exit_code_of
from dmlconf.cli.output.console import output_error, say, silenced_when_closed
from dmlconf.cli.output.workflow_commands import disarm_workflow_commands
from dmlconf.documents.problems import ExpectedError, InvalidFilesError, nearest, printable
from dmlconf.workers.interrupts import treat_termination_as_interrupt
from dmlconf.workers.tuning import collect_garbage_seldom, compute_in_one_thread, lasting_values

__all__ = ["cli", "main"]


class _LazyGroup(click.Group):
    """A group that imports each command when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMAND_NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMAND_NAMES:
            return None
        with lasting_values():
            command: click.Command = command_module(cmd_name).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMAND_NAMES))
        for group in COMMAND_GROUPS:
            commands = [(name, self.get_command(ctx, name)) for name in group.names]
            with formatter.section(group.heading):
                formatter.write_dl(
                    [
                        (name.ljust(width), command.get_short_help_str(formatter.width))
                        for name, command in commands
                        if command is not None
                    ]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMAND_NAMES:
            near = nearest(args[0], COMMAND_NAMES)
            hint = f"Did you mean {near}?" if near else f"Commands: {', '.join(COMMAND_NAMES)}."
            ctx.fail(f"No such command {printable(args[0])!r}. {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> int | None:
        code: int | None = ExitCode.SUCCESS
        try:
            with silenced_when_closed():  # Otherwise click would exit with 1.
                code = super().invoke(ctx)
        except OSError as error:
            problem = output_error(error)
            if problem is None:
                raise
            say(f"Error: {problem}")
            code = code or ExitCode.OUTPUT
        return code


_SETTINGS: Final = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 1000,  # That is, as wide as the terminal.
}


@click.group(cls=_LazyGroup, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="dmlconf")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache folder.")
def cli(no_cache: bool) -> None:
    """Test whether DirectML operators give the documented results."""
    if no_cache:
        from dmlconf.cli.common.cache import turn_off

        turn_off()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit with one of `ExitCode`."""
    _replace_closed_streams()
    disarm_workflow_commands()
    _keep_working_folder_off_path()
    compute_in_one_thread()
    code = _run(arguments)
    _ignore_interrupts()
    _end_by_exit_code()
    sys.exit(code)


def _end_by_exit_code() -> None:
    """Keep Python from ending with SIGINT instead of the exit code under `python -m dmlconf`.

    Python remembers an interrupt during an `exec`, such as that of `dataclass`, even if it was
    handled. Another `exec` makes Python forget the interrupt.
    """
    exec("")


def _replace_closed_streams() -> None:
    """Open closed standard streams on the null device, so no file gets their descriptors."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor_of_null = os.open(os.devnull, os.O_RDWR)
            if descriptor_of_null != number:
                os.dup2(descriptor_of_null, number)
                os.close(descriptor_of_null)
            os.set_inheritable(number, True)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def _ignore_interrupts() -> None:
    """Keep another Ctrl-C from replacing the exit code while Python ends."""
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)


def _run(arguments: Sequence[str] | None) -> int:
    collect_garbage_seldom()
    treat_termination_as_interrupt()
    try:
        return _code_of(arguments)
    except (click.Abort, KeyboardInterrupt):  # Ctrl-C may come while an error is printed.
        _ignore_interrupts()
        say("interrupted")
        return ExitCode.INCOMPLETE


_COMPLETION: Final = "_DMLCONF_COMPLETE"
"""The environment variable with which click writes a shell's script, or completes a word."""


def _require_known_shell() -> None:
    """Refuse a value of `_DMLCONF_COMPLETE` that click would answer with nothing."""
    value = os.environ.get(_COMPLETION)
    if value and not re.fullmatch("(bash|zsh|fish)_(source|complete)", value):
        message = f"{_COMPLETION}={value}: use bash_source, zsh_source or fish_source"
        raise click.UsageError(printable(message))


def _code_of(arguments: Sequence[str] | None) -> int:
    try:
        _require_known_shell()
        code = cli.main(args=arguments, prog_name="dmlconf", standalone_mode=False)
        return int(code or ExitCode.SUCCESS)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort:
        raise
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except InvalidFilesError as error:
        count = len(error.problems)
        say(f"{error}\n\n{count} problem{'s' if count != 1 else ''} found")
        return exit_code_of(error)
    except ExpectedError as error:
        say(f"Error: {error}")
        return exit_code_of(error)
    except Exception as error:
        problem = output_error(error)
        if problem is not None:
            say(f"Error: {problem}")
            return ExitCode.OUTPUT
        import traceback

        traceback.print_exc()
        say("\nThis is a bug in dmlconf itself. Please report it with the lines above.")
        return ExitCode.INTERNAL


def _keep_working_folder_off_path() -> None:
    """Keep the working folder off `sys.path` in the worker processes, which `python -c` starts."""
    os.environ["PYTHONSAFEPATH"] = "1"
