"""Paths of the bundled suite, the schemas and the source files; digests of schemas and sources.

A wheel has the suite and the schemas inside the package (`dmlconf/bundled/`), a checkout beside it.
"""

import os
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

__all__ = [
    "cases_directory",
    "checked_archive",
    "schemas_directory",
    "sources",
    "sources_digest",
]

_PACKAGE = Path(__file__).resolve().parent


@cache
def _directory(name: str) -> Path:
    bundled = _PACKAGE / "bundled" / name
    return bundled if bundled.is_dir() else _PACKAGE.parent / name


def sources(*names: str) -> list[Path]:
    """Return the Python files of packages and modules; those of one package are sorted.

    Args:
        names: paths in the folder `dmlconf`, such as `precision` and `limits.py`.
    """
    paths = (_PACKAGE / name for name in names)
    return [file for path in paths for file in (_files(path) if path.is_dir() else [path])]


def _files(folder: Path, suffixes: tuple[str, ...] = (".py",)) -> list[Path]:
    found = ((above, name) for above, _, names in os.walk(folder) for name in names)
    return sorted(Path(above, name) for above, name in found if name.endswith(suffixes))


@cache
def sources_digest(form: str, *names: str) -> bytes:
    """Return a SHA-256 of `form`, of packages and modules, and of all schemas.

    Args:
        form: what else a cached value depends on, such as the version of its format.
        names: as for `sources`.
    """
    parts = [*map(_source_digest, names), _schemas_digest()]
    return sha256(form.encode() + b"".join(parts)).digest()


@cache
def _source_digest(name: str) -> bytes:
    return _digest_of(sources(name))


@cache
def _schemas_digest() -> bytes:
    return _digest_of(_files(schemas_directory(), (".json", ".yaml")))


def _digest_of(files: Iterable[Path]) -> bytes:
    digest = sha256()
    for path in files:
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.digest()


def cases_directory() -> Path:
    """Return the directory of the bundled suite."""
    return _directory("cases")


def checked_archive() -> Path | None:
    """Return the archive of the checked bundled suite; None in a checkout, which has none."""
    path = _PACKAGE / "bundled" / "checked.archive"
    return path if path.is_file() else None


def schemas_directory() -> Path:
    """Return the directory of the JSON Schemas and of the facts as YAML, such as the catalogue."""
    return _directory("schemas")
