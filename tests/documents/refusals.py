"""Write files for tests, and return the messages with which such files are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from dmlconf.cases.loading.loader import load_suite
from dmlconf.documents.problems import InvalidFilesError

NAME = "f.yaml"
"""The name of a file; expected messages begin with it."""


def write(directory: Path, content: str | bytes, name: str = NAME) -> Path:
    """Write a file byte for byte, and return its path."""
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(call: Callable[[], object], directory: Path) -> str:
    """Return the message with which a call refuses files, without the directory."""
    with pytest.raises(InvalidFilesError) as caught:
        call()
    message = str(caught.value)
    assert message == "\n".join(map(str, caught.value.problems))
    return message.replace(f"{directory}/", "").replace(f"{directory}\\", "")


def refused(path: Path) -> str:
    return refusal(lambda: load_suite([path]), path.parent)


def shown(message: str) -> str:
    """Return an expected message without common indentation."""
    return dedent(message).strip("\n")
