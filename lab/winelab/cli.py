"""The command line of the lab."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from winelab.build import build, build_tree
from winelab.check import check
from winelab.errors import LabError
from winelab.paths import translate
from winelab.recipe import CHECKOUT, Lab, cache_directory, this_lab
from winelab.session import run, run_inside

__all__ = ["CANNOT_BE_USED", "SCRIPT", "main"]

SCRIPT: Final = CHECKOUT / "lab" / "lab.py"

CANNOT_BE_USED: Final = 4
"""The exit code that dmlconf has for a backend that cannot be used, too."""

INTERRUPTED: Final = 128 + signal.SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return _carry_out(options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return CANNOT_BE_USED
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lab.py", description="Microsoft's DirectML.dll on Linux; see docs/wine-lab.md."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("build", help="build the lab, unless it is built")
    passing = commands.add_parser("run", help="run a dmlconf command: run -- list cases/")
    passing.add_argument("arguments", nargs=argparse.REMAINDER, metavar="-- ARGS")
    passing = commands.add_parser("python", help="run Windows Python: python -- script.py")
    passing.add_argument("arguments", nargs=argparse.REMAINDER, metavar="-- ARGS")
    commands.add_parser("check", help="check that the lab works and computes")
    commands.add_parser("path", help="print where the lab is, or will be")
    removal = commands.add_parser("remove", help="remove the lab")
    removal.add_argument("--all", action="store_true", help="labs of other recipes as well")
    # The lab calls itself with these, among mounts and processes of its own.
    inner = commands.add_parser("_build")
    inner.add_argument("directory", type=Path)
    inner = commands.add_parser("_run")
    inner.add_argument("directory", type=Path)
    inner.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _carry_out(options: argparse.Namespace) -> int:
    lab = this_lab()
    match options.command:
        case "build":
            build(lab, SCRIPT)
            print(lab.path)
        case "run":
            return run(lab, SCRIPT, ["-m", "dmlconf", *_given(options.arguments)])
        case "python":
            return run(lab, SCRIPT, _given(options.arguments))
        case "check":
            return check(lambda *given: run(lab, SCRIPT, given))
        case "path":
            print(lab.path)
        case "remove":
            _remove(lab, everything=options.all)
        case "_build":
            build_tree(options.directory)
        case "_run":
            return run_inside(Lab(options.directory), options.arguments)
    return 0


def _given(arguments: list[str]) -> list[str]:
    """Return what stands behind the `--`, with paths as the lab sees them."""
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    return [translate(argument, Path.cwd(), CHECKOUT) for argument in arguments]


def _remove(lab: Lab, *, everything: bool) -> None:
    labs = [lab]
    if everything:
        labs = [Lab(path.with_suffix("")) for path in cache_directory().glob("*.lock")]
    for one in labs:
        for directory in (one.path, one.unfinished):
            if directory.exists():
                shutil.rmtree(directory)
        for suffix in (".log", ".lock"):
            one.path.with_suffix(suffix).unlink(missing_ok=True)
