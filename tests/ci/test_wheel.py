"""A wheel's suite was checked when the wheel was built, and is loaded without another check.

A case file that was changed since is checked again, and every file if code was changed.

The tested code is in `hatch_build.py`, `dmlconf/cases/loading/bundle.py`,
`dmlconf/cases/loading/loader.py` and `dmlconf/documents/archive.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.ci.action import ROOT

pytestmark = pytest.mark.wheel

ARCHIVE = "dmlconf/bundled/checked.archive"
MOST_BYTES = 3_000_000

FEWEST_CASES = 70_000

LOAD_SUITE = """\
import sys
from pathlib import Path
import dmlconf.cases.loading.loader as loader
from dmlconf.cli.options.selection import load_chosen

assert Path(loader.__file__).is_relative_to(sys.argv[1]), loader.__file__
read = []
read_document = loader.read_document
loader.read_document = lambda path: (read.append(path.name), read_document(path))[1]
suite, plan = load_chosen([])
print(len(plan), *read)
"""
"""A program that prints the number of cases and the names of the files that it checks."""


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def package(wheel: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "installed"
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def loaded(package: Path, cache: str = "off") -> tuple[int, list[str]]:
    """Load the suite of an unpacked wheel; return the number of cases and the checked files."""
    environment = {**os.environ, "PYTHONPATH": str(package), "DMLCONF_CACHE": cache}
    ran = subprocess.run(
        [sys.executable, "-c", LOAD_SUITE, str(package)],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    count, *read = ran.stdout.split()
    return int(count), read


def test_the_checked_suite_takes_less_than_3_mb(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        assert 0 < archive.getinfo(ARCHIVE).file_size < MOST_BYTES


def test_the_suite_is_loaded_without_check_or_cache(package: Path) -> None:
    count, read = loaded(package)
    assert count > FEWEST_CASES
    assert read == []


def test_the_bundled_suite_is_not_stored_in_the_cache(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert loaded(package, str(cache))[1] == []
    assert not cache.exists()


def test_a_changed_case_file_is_checked(package: Path) -> None:
    file = package / "dmlconf" / "bundled" / "cases" / "tile" / "documented.yaml"
    file.write_text(file.read_text("utf-8") + "# A comment.\n", "utf-8")
    assert loaded(package)[1] == ["documented.yaml"]


def test_changed_source_code_makes_every_file_checked(package: Path) -> None:
    source = package / "dmlconf" / "cases" / "building" / "operator_build.py"
    source.write_text(source.read_text("utf-8") + "# A comment.\n", "utf-8")
    count, read = loaded(package)
    assert count > FEWEST_CASES
    files = (package / "dmlconf" / "bundled" / "cases").rglob("*.yaml")
    assert sorted(read) == sorted(path.name for path in files)


def test_a_damaged_archive_loses_no_case(
    package: Path,
) -> None:
    whole_count, _ = loaded(package)
    archive = package / ARCHIVE
    archive.write_bytes(archive.read_bytes()[:-100_000])
    count, read = loaded(package)
    assert count == whole_count
    assert read


def test_building_the_wheel_twice_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    again = build(tmp_path)
    assert sha256(again.read_bytes()).digest() == sha256(wheel.read_bytes()).digest()
