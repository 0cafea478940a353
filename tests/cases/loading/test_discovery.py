"""Case files are found below the paths that a command is given, and each is read once.

The tested code is in `dmlconf/cases/loading/discovery.py` and `dmlconf/cases/loading/loader.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.loading.discovery import case_files
from dmlconf.cases.loading.loader import load_suite
from dmlconf.documents.problems import InvalidFilesError
from tests.cases.suites import TILE
from tests.documents.refusals import refusal, shown, write


def test_a_folder_without_cases_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none" / "inner").mkdir(parents=True)
    write(tmp_path / "none", "text", "readme.md")
    assert refusal(lambda: load_suite([tmp_path / "none"]), tmp_path) == shown(
        """
        none: the folder holds no case file
            hint: case files end in .yaml
        """
    )


def test_every_path_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    paths = [tmp_path / "x.yaml", tmp_path / "y"]
    assert refusal(lambda: load_suite(paths), tmp_path) == shown(
        """
        x.yaml: there is no such file or folder
        y: there is no such file or folder
        """
    )


def test_case_files_are_in_the_order_of_paths_and_names(tmp_path: Path) -> None:
    for folder in ("b", "a/inner"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("b/2.yaml", "b/1.yml", "a/inner/3.yaml", "a/9.txt", "z.yaml"):
        write(tmp_path, "", name)
    b, a, z = (tmp_path / name for name in ("b", "a", "z.yaml"))
    files = case_files([z, b, a, b, z])
    names = [path.relative_to(tmp_path).as_posix() for path in files]
    assert names == ["z.yaml", "b/1.yml", "b/2.yaml", "a/inner/3.yaml"]


def identifiers(*paths: Path) -> list[str]:
    return [each.identifier for each in load_suite(paths).plan()]


@pytest.mark.slow
def test_a_folder_that_several_paths_name_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    folder = Path("cases", "activation_identity")
    once = load_suite([folder])
    for other in (folder.absolute(), folder / ".." / folder.name, folder.absolute() / "sizes.yaml"):
        assert identifiers(folder, other) == identifiers(folder)
        assert load_suite([folder, other]).digest == once.digest
    assert case_files([folder, folder.absolute()]) == case_files([folder])


@pytest.mark.slow
def test_shared_files_of_several_paths_are_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    one, other = Path("cases", "activation_identity"), Path("cases", "activation_relu")
    assert identifiers(one, other.absolute()) == identifiers(one, other)
    shared = Path("cases", "shared", "functions-and-conversions")
    assert identifiers(shared, one.absolute()) == identifiers(shared, one)


def test_a_named_case_file_may_have_any_extension(tmp_path: Path) -> None:
    path = write(tmp_path, TILE, "cases.txt")
    assert [case.identifier for case in load_suite([path]).plan()] == ["tile/cases/a"]


def test_files_of_unwanted_cases_are_digested_but_not_checked(
    tmp_path: Path,
) -> None:
    tile = "operator: TILE\ncases:\n  - {name: a, desc: {}, expect: {rejected: E_INVALIDARG}}\n"
    (tmp_path / "documented.yaml").write_text(tile, encoding="utf-8")
    (tmp_path / "boundary.yaml").write_text(tile, encoding="utf-8")
    (tmp_path / "other.yaml").write_text("operator: GATHER\ncases: nonsense\n", encoding="utf-8")
    for wanted in ({"operators": {"TILE"}}, {"files": {("TILE", "boundary")}}):
        suite = load_suite([tmp_path], **wanted)
        files = {template.about.location.path.stem for template in suite.templates}
        assert files == ({"boundary"} if "files" in wanted else {"boundary", "documented"})
    with pytest.raises(InvalidFilesError):
        load_suite([tmp_path])
    whole = load_suite([tmp_path], operators={"TILE"}).digest
    (tmp_path / "other.yaml").unlink()
    assert load_suite([tmp_path]).digest == load_suite([tmp_path], operators={"JOIN"}).digest
    assert load_suite([tmp_path]).digest != whole
