"""The command line of the Wine lab, `lab.py`: build it, run commands in it, test releases."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from winelab.build import build, build_tree
from winelab.check import check
from winelab.errors import LabError
from winelab.packages import fetch_packages, packages_directory
from winelab.paths import translate
from winelab.recipe import CHECKOUT, Lab, cache_directory, this_lab
from winelab.session import run, run_inside
from winelab.suite_runs import LOGS, run_suite
from winelab.versions import chosen, fetch, releases_directory

__all__ = ["CANNOT_BE_USED", "SCRIPT", "main"]

SCRIPT: Final = CHECKOUT / "lab" / "lab.py"

CANNOT_BE_USED: Final = 4
"""The exit code if the lab cannot do what was asked: that of dmlconf for an unusable backend."""

INTERRUPTED: Final = 128 + signal.SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of `lab.py`, and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    further: list[str] = []
    if given[:1] == ["versions"] and "--" in given:
        place = given.index("--")
        given, further = given[:place], given[place + 1 :]
    options = _parser().parse_args(given)
    try:
        if options.command == "versions":
            return _versions(options, further)
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
    for name, summary in {
        "run": "run a dmlconf command: run -- list cases/",
        "python": "run Windows Python: python -- script.py",
    }.items():
        passing = commands.add_parser(name, help=summary)
        passing.add_argument(
            "--directml-version", metavar="VERSION", help="use this release of DirectML"
        )
        passing.add_argument("arguments", nargs=argparse.REMAINDER, metavar="-- ARGS")
    several = commands.add_parser("versions", help="fetch releases of DirectML, and test them")
    several.add_argument("versions", nargs="*", metavar="VERSION", help="default: all")
    several.add_argument(
        "--run",
        action="store_true",
        help="run the whole suite on each release without a log of it; arguments after -- are "
        "further options of dmlconf run",
    )
    several.add_argument(
        "--logs",
        type=Path,
        default=LOGS,
        metavar="FOLDER",
        help=f"folder of the logs, below the current directory; default: {LOGS}",
    )
    several.add_argument("--page", action="store_true", help="print docs/versions.md from the logs")
    several.add_argument(
        "--scoreboard", action="store_true", help="print docs/scoreboard.md from the logs"
    )
    commands.add_parser(
        "packages", help="fetch ONNX Runtime, for run -- capture and run -- run -b onnxruntime"
    )
    layers = commands.add_parser("layers", help="print docs/layers.md from the log of a run")
    layers.add_argument("log", type=Path, metavar="LOG", help="of the cases with the tag model")
    commands.add_parser("check", help="check that the lab works and computes")
    commands.add_parser("path", help="print where the lab is, or will be")
    removal = commands.add_parser("remove", help="remove the lab")
    removal.add_argument(
        "--all",
        action="store_true",
        help="also remove labs of other recipes, and releases of DirectML",
    )
    # The lab starts itself again with these commands, in namespaces of its own.
    inner = commands.add_parser("_build")
    inner.add_argument("directory", type=Path)
    inner = commands.add_parser("_run")
    inner.add_argument("directory", type=Path)
    inner.add_argument("version")
    inner.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _carry_out(options: argparse.Namespace) -> int:
    lab = this_lab()
    match options.command:
        case "build":
            build(lab, SCRIPT)
            print(lab.path)
        case "run":
            given = ["-m", "dmlconf", *_given(options.arguments)]
            return run(lab, SCRIPT, given, options.directml_version)
        case "python":
            return run(lab, SCRIPT, _given(options.arguments), options.directml_version)
        case "packages":
            fetched = "fetched" if fetch_packages() else "here"
            print(f"ONNX Runtime, {fetched}: {packages_directory()}")
        case "layers":
            _layers(options.log)
        case "check":
            return check(lambda *given: run(lab, SCRIPT, given))
        case "path":
            print(lab.path)
        case "remove":
            _remove(lab, everything=options.all)
        case "_build":
            build_tree(options.directory)
        case "_run":
            return run_inside(Lab(options.directory), options.version or None, options.arguments)
    return 0


def _layers(log: Path) -> None:
    with _dmlconf():
        from winelab.layers_page import page
    print(page(log), end="")


@contextmanager
def _dmlconf() -> Iterator[None]:
    """Report it if the block cannot import dmlconf, which only pages from logs need.

    Raises:
        LabError: this Python has no dmlconf.
    """
    try:
        yield
    except ImportError as error:
        message = f"{error}: run lab.py with the Python of an environment that has dmlconf"
        raise LabError(message) from error


def _versions(options: argparse.Namespace, arguments: list[str]) -> int:
    """Fetch releases of DirectML; run the suite on them, or print a page of their logs."""
    releases = chosen(options.versions)
    if options.page or options.scoreboard:
        with _dmlconf():
            from winelab.versions_page import page, scoreboard_page
        render = page if options.page else scoreboard_page
        print(render(releases, options.logs), end="")
        return 0
    for release in releases:
        fetched = "fetched" if fetch(release) else "here"
        print(f"DirectML {release.version:7} {release.package}, {fetched}: {release.file}")
    if not options.run:
        return 0

    def dmlconf(version: str, given: Sequence[str]) -> int:
        return run(this_lab(), SCRIPT, ["-m", "dmlconf", *_given(list(given))], version)

    return run_suite(releases, options.logs, arguments, dmlconf)


def _given(arguments: list[str]) -> list[str]:
    """Return the arguments after `--`, with paths as the lab sees them."""
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    return [translate(argument, Path.cwd(), CHECKOUT) for argument in arguments]


def _remove(lab: Lab, *, everything: bool) -> None:
    labs = [lab]
    if everything:
        shutil.rmtree(releases_directory(), ignore_errors=True)
        labs = [Lab(path.with_suffix("")) for path in cache_directory().glob("*.lock")]
    for one in labs:
        for directory in (one.path, one.unfinished):
            if directory.exists():
                shutil.rmtree(directory)
        for suffix in (".log", ".lock"):
            one.path.with_suffix(suffix).unlink(missing_ok=True)
