"""The workflow of a release builds the wheel, the notes, and a file that runs by itself (.pyz).

The tested code is in `.github/workflows/release.yml`, `release/notes.py`,
`release/single_file.py`, `release/boot/start.py` and `dmlconf/cli/common/started.py` (what to type
for dmlconf).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from dmlconf import __version__
from release.notes import notes
from release.single_file import TARGETS, Target
from tests.ci.action import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def jobs() -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]
    return jobs


@pytest.mark.action
def test_the_workflow_fits_its_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.github-workflows", str(WORKFLOW)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout


def test_no_script_of_the_workflow_contains_an_expression() -> None:
    scripts = [step["run"] for job in jobs().values() for step in job["steps"] if "run" in step]
    assert len(scripts) >= 6
    assert not [script for script in scripts if "${{" in script]


def test_the_windows_job_tries_every_supported_python() -> None:
    tried = set(jobs()["try-on-windows"]["strategy"]["matrix"]["python"])
    assert tried == {target.python for target in TARGETS if target.build == "win-amd64"}


def test_notes_are_the_changes_of_the_tagged_version() -> None:
    changes = (
        "# Changes\n\n## Unreleased\n\n- C.\n\n## 1.2.0 (2026-11-25)\n\n- B.\n\n## 1.1.0\n\n- A.\n"
    )
    assert notes("v1.2.0", "1.2.0", changes) == "- B.\n"
    assert notes("v1.1.0", "1.1.0", changes) == "- A.\n"
    with pytest.raises(ValueError, match="dmlconf's version is"):
        notes("v1.2.0", "1.1.0", changes)
    with pytest.raises(ValueError, match="has no changes"):
        notes("v1.3.0", "1.3.0", changes)


def test_the_change_log_has_notes_of_the_present_version() -> None:
    assert notes(f"v{__version__}", __version__, (ROOT / "CHANGELOG.md").read_text("utf-8"))


def starting_module() -> Any:
    spec = spec_from_file_location("start", ROOT / "release" / "boot" / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_unused_folders_are_removed_though_another_process_renames_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacking, unused = tmp_path / "part-x", tmp_path / "unused"
    for folder in unpacking, unused:
        folder.mkdir()
    os.utime(unused, (0, 0))
    renamed = unpacking.rename(tmp_path / "new")
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([unpacking, unused]))
    starting_module().remove_unused(tmp_path)
    assert renamed.is_dir()
    assert not unused.exists()


IO = Path("/proc/self/io")
"""Where Linux counts the bytes that this process has read and written."""


@pytest.mark.skipif(not os.access(IO, os.R_OK), reason="only Linux counts what a process reads")
def test_unpacking_reads_less_than_ten_times_the_file(tmp_path: Path) -> None:
    boot = starting_module()
    contents = {f"{number:02}.bin": os.urandom(1 << 16) for number in range(40)}
    digests = {name: sha256(data).hexdigest() for name, data in contents.items()}
    with ZipFile(tmp_path / boot.CONTENT, "w") as inner:
        inner.writestr("here.json", json.dumps(digests))
        for name in reversed(contents):
            inner.writestr(digests[name], contents[name])
    boot.FILE = tmp_path / "file.pyz"
    with ZipFile(boot.FILE, "w") as outer:
        outer.write(tmp_path / boot.CONTENT, boot.CONTENT)
    before = read_so_far()
    boot.unpack("here", tmp_path / "unpacked")
    # Reading the file again for each of its 40 members would be 40 times its size.
    assert read_so_far() - before < 10 * boot.FILE.stat().st_size
    for name, data in contents.items():
        assert (tmp_path / "unpacked" / name).read_bytes() == data


def read_so_far() -> int:
    return int(IO.read_text("ascii").partition("rchar: ")[2].split()[0])


def this_target() -> Target | None:
    """Return the target for this Python on Linux, if there is one."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return next((t for t in TARGETS if t.python == version and t.build == "linux-x86_64"), None)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the workflow's job `build` has run, without its first and last command."""
    target = this_target()
    if target is None or shutil.which("bash") is None:
        pytest.skip("the job runs on Linux, with a Python that the single file supports")
    folder = tmp_path_factory.mktemp("release")
    names = ["release", "dmlconf", "cases", "schemas", "pyproject.toml", "hatch_build.py"]
    for name in [*names, "README.md", "CHANGELOG.md", "LICENSE"]:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    steps = {step["name"]: step["run"] for step in jobs()["build"]["steps"] if "run" in step}
    assert next(iter(steps)) == "Install what builds"  # The tests have installed that already.
    assert list(steps)[-1] == "Try the single file"
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "python").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', "utf-8"
    )
    (bin_folder / "python").chmod(0o755)
    environment = {**os.environ, "TAG": f"v{__version__}"}
    environment["PATH"] = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    for name in list(steps)[1:-1]:
        script = steps[name]
        if name == "Build the single file":
            # Other targets take minutes, and need the network.
            script += f" --target {target.name}"
        subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=environment, check=True)
    return folder


@pytest.fixture
def single_file(checkout: Path) -> Path:
    """The file `dmlconf-VERSION.pyz` that the job has built."""
    [file] = (checkout / "dist").glob("*.pyz")
    return file


def run_single_file(
    file: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(file), *arguments],
        cwd=file.parent,
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """The path of a cache, which is removed afterwards."""
    yield tmp_path / "cache"
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)


@pytest.mark.wheel
def test_the_job_makes_wheel_sdist_and_single_file(checkout: Path) -> None:
    names = {path.name for path in (checkout / "dist").iterdir()} - {".gitignore"}
    assert names == {
        f"dmlconf-{__version__}-py3-none-any.whl",
        f"dmlconf-{__version__}.tar.gz",
        f"dmlconf-{__version__}.pyz",
    }
    assert (checkout / "notes.md").read_text("utf-8").strip()


@pytest.mark.wheel
def test_the_single_file_unpacks_once(single_file: Path, cache: Path) -> None:
    options = ["run", "-o", "TILE", "--quick", "-j", "2", "--log", str(cache.parent / "log")]
    first = run_single_file(single_file, *options, DMLCONF_CACHE=str(cache))
    assert first.returncode == 0, first.stderr
    assert "Unpacking dmlconf to" in first.stderr
    [unpacked] = (cache / "unpacked").iterdir()
    assert (unpacked / "numpy").is_dir()
    again = run_single_file(single_file, *options, DMLCONF_CACHE=str(cache))
    assert again.returncode == 0
    assert "Unpacking" not in again.stderr


@pytest.mark.wheel
@pytest.mark.parametrize("setting", ["cache", "off"])
def test_a_failing_run_says_how_to_start_dmlconf(
    single_file: Path, cache: Path, setting: str
) -> None:
    options = ["run", "-o", "TILE", "--quick", "-j", "1", "-b", "faulty:negated"]
    options += ["--log", str(cache.parent / "log")]
    done = run_single_file(
        single_file, *options, DMLCONF_CACHE=setting.replace("cache", str(cache))
    )
    assert done.returncode == 1, done.stderr
    name = Path(sys.executable).name
    assert re.search(rf"type for dmlconf: (\S*/)?{name} {single_file}\n", done.stderr)


@pytest.mark.wheel
def test_without_a_cache_no_temporary_file_remains(single_file: Path, tmp_path: Path) -> None:
    done = run_single_file(single_file, "--version", DMLCONF_CACHE="off", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert __version__ in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.wheel
@pytest.mark.skipif(sys.platform == "win32", reason="the mode says who can write")
def test_a_cache_writable_by_others_is_not_used(single_file: Path, cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    done = run_single_file(single_file, "--version", DMLCONF_CACHE=str(cache))
    assert done.returncode == 0, done.stderr
    assert list((cache / "unpacked").iterdir()) == []


@pytest.mark.wheel
def test_an_unsupported_machine_is_told_what_is_supported(
    single_file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.pyz"
    with ZipFile(single_file) as old, ZipFile(other, "w") as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename == "about.json":
                data = data.replace(b"-linux-x86_64", b"-linux-riscv64")
            new.writestr(member, data)
    done = run_single_file(other, "--version")
    assert done.returncode == 2
    target = this_target()
    assert target is not None
    assert f"holds dmlconf for CPython {target.python} on x86-64 Linux" in done.stderr
    assert "this is CPython 3." in done.stderr
