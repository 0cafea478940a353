"""Build the single file: dmlconf and all that it needs, for several Pythons and systems.

`python -m release.single_file` writes `dist/dmlconf-VERSION.pyz`. It needs the network once, for
wheels of dependencies; what it writes needs none. uv resolves and unpacks for each target, and
`release/boot` is what starts in the file. A file that several targets need is held once.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from uv import find_uv_bin

__all__ = ["TARGETS", "Target", "build", "main"]

ROOT: Final = Path(__file__).resolve().parents[1]
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
EXTRAS: Final = "certify"
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest date of a zip archive; a fixed date makes equal content equal bytes."""
_NOT_NEEDED: Final = re.compile(
    r"^(bin|Scripts)/|__pycache__|^numpy/(.+/)?tests/|^\.lock$|/(direct_url|uv_cache)\.json$"
)
_FROM_THE_FILE: Final = "platformdirs/"


@dataclass(frozen=True, slots=True)
class Target:
    """A Python on a system.

    Attributes:
        python: its version, such as `3.11`.
        system: as uv names it.
        build: as `sysconfig.get_platform()` of that Python says.
    """

    python: str
    system: str
    build: str

    @property
    def name(self) -> str:
        """As `release/boot/start.py` names it: `cp311-win-amd64`."""
        return f"cp{self.python.replace('.', '')}-{self.build}"


TARGETS: Final = tuple(
    Target(python, system, build)
    for system, build in (
        ("x86_64-manylinux_2_28", "linux-x86_64"),
        ("x86_64-pc-windows-msvc", "win-amd64"),
    )
    for python in PYTHONS
)
_SYSTEMS: Final = {
    "linux-x86_64": "Linux with glibc 2.28 or newer",
    "win-amd64": "Windows",
}


def build(wheel: Path, file: Path, targets: Sequence[Target] = TARGETS) -> None:
    """Write the single file.

    Args:
        wheel: of dmlconf.
        file: what to write.
        targets: what it is for.

    Raises:
        subprocess.CalledProcessError: a dependency has no wheel for a target, or there is no
            network; uv has said so.
    """
    contents: dict[str, bytes] = {}
    lists: dict[str, dict[str, str]] = {}
    starting: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as work:
        for target in targets:
            folder = Path(work) / target.name
            _install(wheel, target, folder)
            names = {}
            for name, data in _files(folder):
                names[name] = digest = sha256(data).hexdigest()
                contents[digest] = data
                if name.startswith(_FROM_THE_FILE):
                    starting[name] = data
            lists[target.name] = names
            shutil.rmtree(folder)
    members = {f"{name}.json": _json(names) for name, names in lists.items()}
    about = {
        "digest": sha256(_json(lists)).hexdigest(),
        "holds": _in_words(targets),
        "targets": list(lists),
    }
    outside = {**dict(_files(Path(__file__).parent / "boot")), **starting}
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        stream.write(b"#!/usr/bin/env python3\n")
        with ZipFile(stream, "w") as archive:
            _add(archive, {**outside, "about.json": _json(about)})
            inner = BytesIO()
            with ZipFile(inner, "w") as content:
                _add(content, {**members, **contents})
            # Stored, so that its members can be read without unpacking it.
            archive.writestr(ZipInfo("content.zip", _EARLIEST), inner.getvalue(), ZIP_STORED)
    file.chmod(0o755)


def _in_words(targets: Sequence[Target]) -> str:
    """Return what targets are: `CPython 3.11, 3.12 on x86-64 Windows; ...`."""
    systems = {
        system: [each.python for each in targets if each.build == name]
        for name, system in _SYSTEMS.items()
    }
    return "; ".join(
        f"CPython {', '.join(pythons)} on x86-64 {system}"
        for system, pythons in systems.items()
        if pythons
    )


def _install(wheel: Path, target: Target, folder: Path) -> None:
    command = [
        find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        "--target",
        str(folder),
        "--python",
        sys.executable,
        "--only-binary",
        ":all:",
        "--link-mode",
        "copy",
        "--python-version",
        target.python,
        "--python-platform",
        target.system,
        "--constraints",
        str(ROOT / "release" / "constraints.txt"),
        f"dmlconf[{EXTRAS}] @ {wheel.resolve().as_uri()}",
    ]
    subprocess.run(command, check=True)


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file of a folder that the single file needs."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not _NOT_NEEDED.search(name):
            yield name, path.read_bytes()


def _add(archive: ZipFile, members: Mapping[str, bytes]) -> None:
    """Add members; the same members give the same bytes."""
    for name, data in sorted(members.items()):
        archive.writestr(ZipInfo(name, _EARLIEST), data, ZIP_DEFLATED, 9)


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()


def _wheel(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    command = [find_uv_bin(), "build", "--quiet", "--wheel", "-o", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the file, and print what it is for and how large it is."""
    parser = argparse.ArgumentParser(prog="python -m release.single_file", description=__doc__)
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, default=Path("dist"))
    parser.add_argument(
        "--wheel", metavar="FILE", type=Path, help="hold this wheel of dmlconf; else build one"
    )
    parser.add_argument(
        "--target",
        metavar="NAME",
        action="append",
        choices=[each.name for each in TARGETS],
        help="hold only this one, such as cp311-win-amd64; may be repeated",
    )
    given = parser.parse_args(arguments)
    targets = [each for each in TARGETS if not given.target or each.name in given.target]
    try:
        with tempfile.TemporaryDirectory() as work:
            wheel = given.wheel or _wheel(Path(work))
            file = given.output / f"dmlconf-{wheel.name.split('-')[1]}.pyz"
            build(wheel, file, targets)
    except subprocess.CalledProcessError as error:
        sys.exit(f"Error: uv could not do it (exit code {error.returncode})")
    print(f"{file}: {file.stat().st_size / 1e6:,.0f} MB, for {', '.join(t.name for t in targets)}")


if __name__ == "__main__":
    main()
