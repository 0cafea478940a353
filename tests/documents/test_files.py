"""Files are read up to a limit, whatever size they claim to have; a loop of links is resolved.

The tested code is in `dmlconf/documents/files.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dmlconf.documents.files import UnreadableFileError, read_bytes, resolved

PROC_STATUS = Path("/proc/self/status")
"""A file with content; `stat` says that its size is 0."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a file")
def test_file_is_read_beyond_the_size_it_claims() -> None:
    assert PROC_STATUS.stat().st_size == 0
    assert b"\nVmRSS:" in read_bytes(PROC_STATUS, 1 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a file")
def test_file_beyond_the_limit_is_refused_whatever_it_claims() -> None:
    with pytest.raises(UnreadableFileError, match="at most 20 are read"):
        read_bytes(PROC_STATUS, 20)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_loop_of_links_resolves_to_itself(tmp_path: Path) -> None:
    loop = tmp_path.resolve() / "loop"
    loop.symlink_to(loop)
    assert resolved(loop) == loop
