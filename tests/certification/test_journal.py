"""The journal of one certification is not removed by another that ends.

The tested code is in `dmlconf/certification/journal.py`.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from dmlconf.certification.journal import Journal


def test_journal_that_begins_when_another_is_done_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "it.dmlcert.partial"
    close = os.close
    with ExitStack() as stack:

        def release_and_begin(descriptor: int) -> None:
            monkeypatch.setattr(os, "close", close)
            close(descriptor)
            stack.enter_context(Journal(path, {"suite": "new"}, resume=True))

        with Journal(path, {"suite": "old"}, resume=False) as journal:
            journal.done()
            monkeypatch.setattr(os, "close", release_and_begin)
        assert '"suite":"new"' in path.read_text("utf-8")
