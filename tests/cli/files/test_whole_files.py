"""A file is replaced as a whole: a process that dies or fails leaves the old file, not a part.

The tested code is in `dmlconf/documents/whole_files.py`, `dmlconf/cli/output/files.py`,
`dmlconf/cli/options/reporting.py` and `dmlconf/cli/common/logs.py`.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dmlconf.run_log.log import read_log
from tests.cli.files.test_containers import OWN_MOUNTS, run_in_namespace
from tests.cli.process import (
    DMLCONF,
    MANY,
    RIGHT,
    beginning,
    dmlconf,
    dmlconf_here,
    environment,
    script,
    write,
)

FAILING = MANY.replace("LAST", "3")

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="only some accounts make links")
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
needs_shells = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux and its shell")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the log `run.jsonl` of one case."""
    assert dmlconf_here(tmp_path, "run", write(tmp_path), "--log", "run.jsonl").returncode == 0
    return tmp_path


def left_over(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.breakdown
@pytest.mark.parametrize("name", ["json", "html"])
def test_a_process_that_is_killed_leaves_the_old_report(tmp_path: Path, name: str) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path, FAILING), "--log", "run.jsonl", "-q")
    assert done.returncode == 1
    out = tmp_path / "out"
    out.mkdir()
    report = ("report", "run.jsonl", "-q", "--report", f"{name}:out/report")
    assert dmlconf(tmp_path, *report).returncode == 0
    file = out / "report"
    old, before = file.read_bytes(), file.stat()
    with beginning(tmp_path, *report) as process:
        ended = process.poll()
        while list(out.iterdir()) == [file] and file.stat() == before:
            assert ended is None
            ended = process.poll()
        process.kill()
    assert file.read_bytes() == old


@pytest.mark.hostile
@needs_shells
def test_a_report_that_does_not_fit_on_the_disk_leaves_the_old_one(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    done = dmlconf_here(tmp_path, "run", write(tmp_path, FAILING), "--log", "run.jsonl", "-q")
    assert done.returncode == 1
    (tmp_path / "old.json").write_text("old", encoding="utf-8")
    command = f"ulimit -f 16; {script(tmp_path)} report run.jsonl -q --report json:old.json"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=environment(tmp_path, PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 8
    assert "--report json:old.json could not be written: File too large" in done.stderr
    assert (tmp_path / "old.json").read_text("utf-8") == "old"
    assert not left_over(tmp_path)


WRITERS = {
    "report": ["report", "run.jsonl", "--report", "json:{}"],
    "merge": ["merge", "run.jsonl", "-o", "{}"],
    "record": ["record", "tile.yaml", "-b", RIGHT, "-o", "{}"],
}
"""Commands that replace the file `{}`."""


@needs_links
@pytest.mark.parametrize("name", WRITERS)
def test_a_link_stays_and_the_file_to_which_it_leads_is_replaced(folder: Path, name: str) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "file.dmlrec").touch()
    (folder / "elsewhere" / "file.dmlrec").chmod(0o640)
    (folder / "second.dmlrec").symlink_to("elsewhere/file.dmlrec")
    (folder / "first.dmlrec").symlink_to(folder / "second.dmlrec")
    done = dmlconf_here(folder, *(each.format("first.dmlrec") for each in WRITERS[name]))
    assert done.returncode == 0, done.stderr
    assert (folder / "first.dmlrec").is_symlink()
    assert (folder / "second.dmlrec").is_symlink()
    status = (folder / "elsewhere" / "file.dmlrec").stat()
    assert status.st_size
    assert stat.S_IMODE(status.st_mode) == 0o640
    assert [path.name for path in (folder / "elsewhere").iterdir()] == ["file.dmlrec"]


def opened_for_writing(pipe: Path, reader: subprocess.Popen[bytes]) -> int:
    """Open a pipe as soon as its reader has."""
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        assert reader.poll() is None
        time.sleep(0.01)


@needs_pipes
@pytest.mark.parametrize("name", ["report", "record"])
def test_a_pipe_is_written_to_and_not_replaced(folder: Path, name: str) -> None:
    pipe = folder / "pipe.dmlrec"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        writing = opened_for_writing(pipe, reader)
        arguments = [each.format("pipe.dmlrec") for each in WRITERS[name]]
        try:
            done = dmlconf_here(folder, *arguments)
        finally:
            os.close(writing)  # The reader ends when nobody can write any more.
        printed, _ = reader.communicate()
    assert done.returncode == 0, done.stderr
    assert printed
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@needs_pipes
def test_a_log_is_not_merged_into_a_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    done = dmlconf_here(folder, "merge", "run.jsonl", "-o", "pipe")
    assert done.returncode == 2
    assert "-o pipe: not a regular file; reports are read from the log" in done.stderr
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


@needs_shells
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_a_report_to_the_file_behind_standard_output_does_not_replace_it(
    folder: Path, name: str
) -> None:
    (folder / "link").symlink_to("/dev/stdout")
    with (folder / "out.json").open("ab") as stream:
        subprocess.run(
            [*DMLCONF, "report", "run.jsonl", "-q", "--report", f"json:{name}"],
            stdout=stream,
            cwd=folder,
            env=environment(folder),
            check=True,
        )
        assert os.fstat(stream.fileno()).st_ino == (folder / "out.json").stat().st_ino
    assert b'"verdicts"' in (folder / "out.json").read_bytes()
    assert (folder / "link").is_symlink()


def _unprivileged(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run dmlconf as this user, but without the privilege to ignore permissions."""
    privileges = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    return subprocess.run(
        [*(privileges if os.geteuid() == 0 else ()), *DMLCONF, *arguments],
        cwd=folder,
        env=environment(folder.parent, PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@needs_shells
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_in_a_read_only_folder_is_written(folder: Path, name: str) -> None:
    closed = folder / "closed"
    closed.mkdir()
    (closed / "file.dmlrec").touch()
    closed.chmod(0o555)
    arguments = [each.format("closed/file.dmlrec") for each in WRITERS[name]]
    done = _unprivileged(folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert (closed / "file.dmlrec").stat().st_size
    closed.chmod(0o755)


@needs_shells
@pytest.mark.parametrize("name", WRITERS)
def test_a_read_only_file_is_not_replaced(folder: Path, name: str) -> None:
    (folder / "file.dmlrec").touch(mode=0o444)
    done = _unprivileged(folder, *(each.format("file.dmlrec") for each in WRITERS[name]))
    assert done.returncode in (2, 8)
    assert "Permission denied" in done.stderr
    assert (folder / "file.dmlrec").stat().st_size == 0
    assert not left_over(folder)


@needs_shells
@pytest.mark.parametrize("name", WRITERS)
def test_a_mounted_file_is_written(folder: Path, name: str) -> None:
    (folder / "file.dmlrec").touch()
    (folder / "mounted.dmlrec").touch()
    arguments = " ".join(each.format("mounted.dmlrec") for each in WRITERS[name])
    mount = "mount --bind file.dmlrec mounted.dmlrec"
    done = run_in_namespace(folder, OWN_MOUNTS, mount, f"eval $D {arguments}")
    assert done.returncode == 0, done.stderr
    assert (folder / "file.dmlrec").stat().st_size
    assert not left_over(folder)


@needs_shells
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_a_group_that_a_user_namespace_lacks_is_written(folder: Path, name: str) -> None:
    """A container without privileges has such a namespace."""
    groups = (
        [12345] if os.geteuid() == 0 else [each for each in os.getgroups() if each != os.getgid()]
    )
    if not groups:
        pytest.skip("this account has only one group")
    file = folder / "file.dmlrec"
    file.touch(mode=0o666)
    os.chown(file, -1, groups[0])
    arguments = " ".join(each.format(file.name) for each in WRITERS[name])
    done = run_in_namespace(folder, "--user --map-root-user", f"eval $D {arguments}")
    assert done.returncode == 0, done.stderr
    assert file.stat().st_size
    assert file.stat().st_gid == groups[0]
    assert not left_over(folder)


@needs_links
def test_the_log_of_a_living_run_is_not_replaced_through_a_link(folder: Path) -> None:
    (folder / "link").symlink_to("other.jsonl")
    (folder / "other.jsonl").touch()
    arguments = ("run", "tile.yaml", "-b", "faulty:hang", "--log", "other.jsonl")
    with beginning(folder, *arguments) as process:
        while not (folder / "other.jsonl").stat().st_size:
            assert process.poll() is None
        done = dmlconf_here(folder, "merge", "run.jsonl", "-o", "link")
        process.kill()
    assert done.returncode == 2
    assert "a run is writing to it" in done.stderr
    assert read_log(folder / "other.jsonl").footer is None
