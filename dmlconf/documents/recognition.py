"""Recognise files that nobody wants overwritten, such as keys and run logs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from dmlconf.documents.files import UnreadableFileError, open_regular

__all__ = ["CERTIFICATE", "RECORDING", "RUN_LOG", "YAML_KINDS", "recognised"]

RUN_LOG: Final = "a run log"
RECORDING: Final = "a recording"
CERTIFICATE: Final = "a certificate"
YAML_KINDS: Final = frozenset({"a case file", "a file of waivers", "a substrate"})
"""The kinds that are YAML files."""

_BEGINNING: Final = 1 << 16
"""How many first bytes of a file are looked at."""

_LOG_BEGINNING: Final = b'{"record":"header"'

_CONTENTS: Final = (
    (RUN_LOG, re.compile(rb'\{"record": ?"header"')),
    ("a key", re.compile(rb"(?s).*-----BEGIN [A-Z0-9 ]{1,60}-----")),
    ("a NumPy array", re.compile(rb"\x93NUMPY")),
    (RECORDING, re.compile(rb"(?s)PK\x03\x04.{26}recording\.json|PK\x03\x04.{26}outputs\.bin")),
    (CERTIFICATE, re.compile(rb"(?s)PK\x03\x04.{26}attestation\.json")),
    ("source code", re.compile(rb"#!|(?:/\*|//)|#include\b|#pragma\b")),
    ("a case file", re.compile(rb"(?ms)(?=.*^(?:operators?|graph):)(?=.*^cases:)")),
    (
        "a case file",
        re.compile(
            rb"""(?s)(?:\xef\xbb\xbf)?\s*\{\s*["']?(?:operators?|graph)["']?\s*:.*\bcases\b"""
        ),
    ),
    ("a file of waivers", re.compile(rb"(?ms).*^waivers:")),
    ("a substrate", re.compile(rb"(?ms).*^substrate:")),
)
"""For each kind of file, what its first `_BEGINNING` bytes match."""

_SOURCE_SUFFIX: Final = re.compile(
    r"\.(?:"
    r"bash|bat|c|cc|cfg|cjs|cmake|cmd|cpp|cs|cxx|go|h|hlsl|hpp"
    r"|idl|ini|ipynb|java|jl|js|jsx|kt|lua|m|mjs|mm|nix|php|"
    r"pl|ps1|py|pyi|pyx|r|rb|rs|scala|sh|sql|swift|toml|ts|tsx"
    r"|zsh"
    r")",
    re.IGNORECASE,
)
_SOURCE_NAMES: Final = frozenset(
    {"BUILD", "CMakeLists.txt", "Dockerfile", "GNUmakefile", "Makefile", "makefile"}
)


def recognised(path: Path) -> str | None:
    """Return the kind of a file that nobody wants overwritten, such as `a run log`.

    A log that was cut off in its first words, perhaps with null bytes after them, is a run log.

    Returns:
        None for other files, such as reports, and for empty, absent or unreadable files.
    """
    try:
        with open_regular(path) as stream:
            content = stream.read(_BEGINNING)
    except (OSError, UnreadableFileError):
        return None
    if not content:
        return None
    if _LOG_BEGINNING.startswith(content.rstrip(b"\0")):
        return RUN_LOG
    for kind, beginning in _CONTENTS:
        if beginning.match(content):
            return kind
    is_source = _SOURCE_SUFFIX.fullmatch(path.suffix) is not None or path.name in _SOURCE_NAMES
    return "source code" if is_source else None
