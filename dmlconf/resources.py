"""Where the bundled suite and the schemas are.

A wheel carries them inside the package (`dmlconf/bundled/`); a checkout has
them beside it.
"""

from pathlib import Path

__all__ = ["cases_directory", "schemas_directory"]

_PACKAGE = Path(__file__).resolve().parent


def _directory(name: str) -> Path:
    bundled = _PACKAGE / "bundled" / name
    return bundled if bundled.is_dir() else _PACKAGE.parent / name


def cases_directory() -> Path:
    """Return the directory of the bundled suite."""
    return _directory("cases")


def schemas_directory() -> Path:
    """Return the directory of the JSON Schemas and the operator catalogue."""
    return _directory("schemas")
