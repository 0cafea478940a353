"""Commands that check at the same moment whether they can write do not harm each other's files.

The tested code is in `dmlconf/cli/output/files.py`, `dmlconf/cli/output/preflight.py` and
`dmlconf/documents/files.py`.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dmlconf.cli.common.logs import opened_log
from dmlconf.cli.output.files import replaced, require_folder
from dmlconf.cli.output.preflight import prepare_files


def test_check_does_not_remove_the_log_of_a_run_that_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "run.jsonl"
    close = os.close
    with ExitStack() as stack:

        def close_and_begin(descriptor: int) -> None:
            monkeypatch.setattr(os, "close", close)
            close(descriptor)
            stack.enter_context(opened_log(log))

        monkeypatch.setattr(os, "close", close_and_begin)
        prepare_files([("--log run.jsonl", log)], log=log)
        assert log.exists()


@pytest.mark.parametrize("name", ["write_bytes", "touch"])
def test_folder_that_another_command_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    output = tmp_path / "new" / "it.dmlcert"
    real = getattr(Path, name)

    def remove_and_write(path: Path, *arguments: Any) -> Any:
        monkeypatch.setattr(Path, name, real)
        path.parent.rmdir()
        return real(path, *arguments)

    monkeypatch.setattr(Path, name, remove_and_write)
    require_folder(output.parent)
    replaced(output, b"content")
    assert output.read_bytes() == b"content"
