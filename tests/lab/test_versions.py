"""Releases of DirectML are fetched, chosen, run and compared.

The tested code is in `lab/winelab/versions.py`, `lab/winelab/packages.py`,
`lab/winelab/session.py`, `lab/winelab/suite_runs.py`, `lab/winelab/versions_page.py` and
`lab/winelab/cli.py`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.reports import logs as reports

if sys.platform == "win32":
    pytest.skip("the Wine lab is for Linux", allow_module_level=True)

from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Reason, ReasonKind
from winelab import cli, packages
from winelab.errors import LabError
from winelab.packages import fetch_packages, packages_directory
from winelab.recipe import CHECKOUT, Recipe
from winelab.session import environment_for
from winelab.suite_runs import log_file, run_suite, suite_digest
from winelab.versions import Release, chosen, fetch, library, releases
from winelab.versions_page import page, scoreboard_page, section_of_faults

DLL = b"MZ this is DirectML"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of releases, which does not exist yet."""
    monkeypatch.setenv("DMLCONF_LAB", str(tmp_path / "labs"))
    return tmp_path / "labs"


class TestReleases:
    def test_releases_have_digests_and_are_in_order(self) -> None:
        known = releases()
        assert [r.version for r in known] == [
            "1.8.0",
            "1.8.2",
            "1.9.0",
            "1.9.1",
            "1.10.1",
            "1.12.0",
            "1.12.1",
            "1.13.1",
            "1.14.1",
            "1.14.2",
            "1.15.1",
            "1.15.2",
            "1.15.4",
        ]
        for release in known:
            assert re.fullmatch(r"\w+_directml-[\w.-]+-win_amd64\.whl", release.wheel)
            assert re.fullmatch("[0-9a-f]{64}", release.wheel_sha256)
            assert re.fullmatch("[0-9a-f]{64}", release.sha256)
        assert len({digest for r in known for digest in (r.sha256, r.wheel_sha256)}) == 2 * 13
        numbers = [tuple(map(int, release.version.split("."))) for release in known]
        assert sorted(numbers) == numbers

    def test_the_lab_has_the_latest_release(self) -> None:
        recipe = Recipe.load()
        latest = releases()[-1]
        assert (latest.version, latest.sha256) == (
            recipe.directml["version"],
            recipe.directml["sha256"],
        )
        assert recipe.wheels[latest.wheel] == latest.wheel_sha256

    def test_a_release_names_its_package_for_pip(self) -> None:
        assert chosen(["1.8.0"])[0].package == "onnxruntime-directml 1.10.0"

    def test_all_releases_are_chosen_if_none_is_named(self) -> None:
        assert chosen([]) == releases()

    def test_an_unknown_version_is_refused_with_the_known_ones(self) -> None:
        with pytest.raises(
            LabError, match=r"there is no DirectML 1\.8\.1; the versions are 1\.8\.0, "
        ):
            chosen(["1.15.4", "1.8.1"])


def download_of(members: dict[str, bytes]) -> tuple[Release, Callable[[Release, Path], None]]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    wheel = packed.getvalue()

    def download(release: Release, folder: Path) -> None:
        (folder / release.wheel).write_bytes(wheel)

    release = replace(
        releases()[0],
        sha256=hashlib.sha256(DLL).hexdigest(),
        wheel_sha256=hashlib.sha256(wheel).hexdigest(),
    )
    return release, download


def no_download(release: Release, folder: Path) -> None:
    raise AssertionError("nothing should be downloaded")


class TestFetch:
    @pytest.mark.parametrize("folder", ["", "onnxruntime_directml-1.10.0.data/purelib/"])
    def test_fetching_takes_the_library_out_of_its_wheel_once(self, folder: str) -> None:
        members = {f"{folder}onnxruntime/capi/DirectML.dll": DLL, "other/x.dll": b"x"}
        release, download = download_of(members)
        assert fetch(release, download)
        assert release.file.read_bytes() == DLL
        assert [path.name for path in release.file.parent.iterdir()] == ["DirectML.dll"]
        assert not fetch(release, no_download)

    def test_two_processes_fetch_the_same_release_at_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        release, download = download_of({"onnxruntime/capi/DirectML.dll": DLL})
        move = Path.replace

        def other_first(path: Path, target: Path) -> Path:
            monkeypatch.setattr(Path, "replace", move)
            monkeypatch.setattr(os, "getpid", lambda: 1)
            assert fetch(release, download)
            return move(path, target)

        monkeypatch.setattr(Path, "replace", other_first)
        assert fetch(release, download)
        assert [path.name for path in release.file.parent.iterdir()] == ["DirectML.dll"]

    @pytest.mark.parametrize("digest", ["sha256", "wheel_sha256"])
    def test_a_file_with_another_digest_is_refused_and_removed(self, digest: str) -> None:
        release, download = download_of({"onnxruntime/capi/DirectML.dll": DLL})
        changed: Any = {digest: "0" * 64}
        with pytest.raises(LabError, match="SHA-256 is"):
            fetch(replace(release, **changed), download)
        assert not release.file.exists()

    def test_a_file_that_changed_after_fetching_is_refused(self) -> None:
        release, download = download_of({"onnxruntime/capi/DirectML.dll": DLL})
        fetch(release, download)
        release.file.write_bytes(b"changed")
        with pytest.raises(LabError, match=r"DirectML\.dll: SHA-256 is"):
            fetch(release, no_download)

    def test_a_download_without_a_file_is_reported(self) -> None:
        release, _ = download_of({})
        with pytest.raises(LabError, match=r"\.whl could not be downloaded"):
            fetch(release, lambda release, folder: None)


class TestPackages:
    def test_packages_with_another_digest_are_refused_and_removed(self) -> None:
        def fetch(wheel: str, sha256: str, folder: Path) -> None:
            (folder / wheel).write_bytes(b"other")

        with pytest.raises(LabError, match=r"SHA-256.*names"):
            fetch_packages(fetch)
        assert not packages_directory().exists()
        assert not list(packages_directory().parent.iterdir())

    def test_two_processes_replace_old_packages_at_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("new-1.0.dist-info/METADATA", "")
        digest = hashlib.sha256(packed.getvalue()).hexdigest()
        monkeypatch.setattr(packages, "_wheels", lambda: {"new-1.0-any.whl": digest})
        (packages_directory() / "old-1.0.dist-info").mkdir(parents=True)
        rename = Path.rename

        def fetch(wheel: str, sha256: str, folder: Path) -> None:
            (folder / wheel).write_bytes(packed.getvalue())

        def other_in_between(path: Path, target: Path) -> Path:
            monkeypatch.setattr(Path, "rename", rename)
            renamed = rename(path, target)
            assert fetch_packages(fetch)
            return renamed

        monkeypatch.setattr(Path, "rename", other_in_between)
        assert fetch_packages(fetch)
        assert [path.name for path in packages_directory().iterdir()] == ["new-1.0.dist-info"]
        assert [path.name for path in packages_directory().parent.iterdir()] == ["packages"]


class TestFetchedReleases:
    def test_the_error_of_a_missing_release_says_how_to_fetch_it(self) -> None:
        with pytest.raises(LabError, match=r"fetch it with: python3 lab/lab\.py versions 1\.9\.0"):
            library("1.9.0")

    def test_a_release_changes_only_the_path_of_directml(self) -> None:
        [release] = chosen(["1.9.0"])
        release.file.parent.mkdir(parents=True)
        release.file.write_bytes(DLL)
        environment = environment_for({}, "1.9.0")
        assert environment["DMLCONF_DIRECTML"] == r"Z:\directml\1.9.0\DirectML.dll"
        assert {**environment, "DMLCONF_DIRECTML": ""} == {
            **environment_for({}),
            "DMLCONF_DIRECTML": "",
        }

    def test_an_unknown_release_gives_exit_code_4(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["versions", "1.8.1"]) == 4
        assert "there is no DirectML 1.8.1" in capsys.readouterr().err

    def test_remove_all_deletes_the_releases(self, cache: Path) -> None:
        release, download = download_of({"onnxruntime/capi/DirectML.dll": DLL})
        fetch(release, download)
        assert cli.main(["remove"]) == 0
        assert release.file.is_file()
        assert cli.main(["remove", "--all"]) == 0
        assert not release.file.exists()


KNOWN_FAULT = Reason(ReasonKind.KNOWN_FAULT, "a-fault, in DirectML 1.9.0: It is wrong.")
LEVEL_TOO_LOW = Reason(ReasonKind.FEATURE_LEVEL, "needs feature level 6_4")


def log_of(version: str, level: str, *verdicts: Any) -> RunLog:
    environment = {
        **reports.HEADER.environment,
        "version": version,
        "details": {"feature_level": level},
    }
    return reports.run_log(*verdicts, environment=environment, options={"against": "auto"})


class StandInLab:
    """A lab whose runs only write a log with given verdicts."""

    def __init__(self, *verdicts: Any, code: int = 0, ends: bool = True) -> None:
        self.verdicts = verdicts
        self.code = code
        self.ends = ends
        self.calls: list[tuple[str, list[str]]] = []

    def __call__(self, version: str, arguments: Sequence[str]) -> int:
        self.calls.append((version, list(arguments)))
        log = log_of(version, "5_0", *self.verdicts)
        reports.write(Path(arguments[-1]), log if self.ends else replace(log, footer=None))
        return self.code


class TestSuite:
    @pytest.mark.slow
    def test_the_suite_runs_on_each_release(self, tmp_path: Path) -> None:
        lab = StandInLab(reports.PASSED)
        assert run_suite(chosen(["1.8.0", "1.9.0"]), tmp_path / "logs", ["--quick"], lab) == 0
        assert [version for version, _ in lab.calls] == ["1.8.0", "1.9.0"]
        command = lab.calls[0][1]
        assert command[:4] == ["run", str(CHECKOUT / "cases"), "-b", "directml"]
        assert "--quick" in command
        logs = {path.name for path in (tmp_path / "logs").glob("*.jsonl")}
        assert logs == {"1.8.0.jsonl", "1.9.0.jsonl"}

    @pytest.mark.slow
    def test_a_release_is_run_again_only_with_other_options(self, tmp_path: Path) -> None:
        picked = chosen(["1.8.0", "1.9.0"])
        run_suite(picked[:1], tmp_path, [], StandInLab(reports.PASSED))
        lab = StandInLab(reports.PASSED)
        run_suite(picked, tmp_path, [], lab)
        assert [version for version, _ in lab.calls] == ["1.9.0"]
        run_suite(picked, tmp_path, ["--quick"], lab)
        assert [version for version, _ in lab.calls] == ["1.9.0", "1.8.0", "1.9.0"]

    @pytest.mark.slow
    def test_a_run_that_did_not_end_is_repeated(self, tmp_path: Path) -> None:
        picked = chosen(["1.8.0"])
        run_suite(picked, tmp_path, [], StandInLab(reports.PASSED, ends=False))
        lab = StandInLab(reports.PASSED)
        run_suite(picked, tmp_path, [], lab)
        run_suite(picked, tmp_path, [], lab)
        assert len(lab.calls) == 1

    @pytest.mark.slow
    def test_a_failure_does_not_stop_other_releases(self, tmp_path: Path) -> None:
        picked = chosen(["1.8.0", "1.9.0"])
        lab = StandInLab(reports.FAILED, code=1)
        assert run_suite(picked, tmp_path, [], lab) == 1
        assert run_suite(picked, tmp_path, [], lab) == 1
        assert len(lab.calls) == 2

    @pytest.mark.slow
    def test_a_run_that_is_not_repeated_has_its_earlier_exit_code(self, tmp_path: Path) -> None:
        picked = chosen(["1.8.0"])
        lab = StandInLab(reports.PASSED, code=7)
        assert [run_suite(picked, tmp_path, [], lab) for _ in range(2)] == [7, 7]
        assert len(lab.calls) == 1

    def test_the_digest_changes_with_each_file_and_with_options(self, tmp_path: Path) -> None:
        for name in ("cases/a.yaml", "dmlconf/b.py", "schemas/c.yaml", "lab/substrate.yaml"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("x")
        first = suite_digest([], tmp_path)
        assert suite_digest(["--quick"], tmp_path) != first
        for path in sorted(tmp_path.rglob("*.*")):
            path.write_text("y")
            assert suite_digest([], tmp_path) != first
            path.write_text("x")
        assert suite_digest([], tmp_path) == first


class TestPage:
    @pytest.fixture
    def picked(self, tmp_path: Path) -> list[Release]:
        picked = chosen(["1.9.0", "1.9.1"])
        waived = reports.WAIVED.judged(reason=KNOWN_FAULT)
        newer = reports.UNSUPPORTED.judged(reason=LEVEL_TOO_LOW)
        old = log_of("1.9.0", "5_0", reports.PASSED, waived, newer)
        new = log_of("1.9.1", "5_2", reports.PASSED, reports.PASSED_NEAR, reports.UNSUPPORTED)
        reports.write(log_file(tmp_path, picked[0]), old)
        reports.write(log_file(tmp_path, picked[1]), new)
        return picked

    def test_the_page_counts_verdicts_of_each_release(
        self, picked: list[Release], tmp_path: Path
    ) -> None:
        rows = [line for line in page(picked, tmp_path).splitlines() if line.startswith("| 1.9")]
        old = "1.9.0 | 5_0 | onnxruntime-directml 1.12.1 | 2022-08-03"
        new = "1.9.1 | 5_2 | onnxruntime-directml 1.13.1 | 2022-10-22"
        # Passed, failed, broken, known faults, unchecked, and unsupported for three reasons.
        assert rows[:2] == [
            f"| {old} | 1 | 0 | 0 | 1 | 0 | 1 | 0 | 0 |",
            f"| {new} | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
        ]

    def test_the_page_reports_fixed_faults_between_releases(
        self, picked: list[Release], tmp_path: Path
    ) -> None:
        fault = "unsigned-64-bit-index-taken-as-negative"
        begin = f"| 1.9.0 | 1.9.1 | 5_0 to 5_2 | 1 | [{fault}](#{fault})<br>"
        [row] = [line for line in page(picked, tmp_path).splitlines() if line.startswith(begin)]
        assert row.endswith(" | - |")

    def test_the_scoreboard_has_a_column_for_each_release(
        self, picked: list[Release], tmp_path: Path
    ) -> None:
        lines = scoreboard_page(picked, tmp_path).splitlines()
        assert "| Operator | 1.9.0 | 1.9.1 |" in lines
        assert "| **waived** | 1 | 0 |" in lines

    def test_the_page_names_failures_that_nothing_explains(
        self, picked: list[Release], tmp_path: Path
    ) -> None:
        assert "Not explained" not in page(picked, tmp_path)
        reports.write(log_file(tmp_path, picked[1]), log_of("1.9.1", "5_2", reports.FAILED))
        assert f"- 1.9.1: `{reports.FAILED.case}`: wrong values" in page(picked, tmp_path)

    def test_missing_unfinished_and_incomparable_logs_are_refused(
        self, picked: list[Release], tmp_path: Path
    ) -> None:
        first, second = (log_file(tmp_path, release) for release in picked)
        kept = second.read_text()
        second.unlink()
        with pytest.raises(LabError, match=r"create it with: .* versions --run 1\.9\.1"):
            page(picked, tmp_path)
        second.write_text(first.read_text())
        with pytest.raises(LabError, match=r"is from DirectML 1\.9\.0, not 1\.9\.1"):
            page(picked, tmp_path)
        second.write_text("".join(kept.splitlines(keepends=True)[:-1]))
        with pytest.raises(LabError, match="did not finish"):
            page(picked, tmp_path)
        header, *rest = kept.splitlines(keepends=True)
        other = json.dumps({**json.loads(header), "suite_digest": "a" * 64}) + "\n"
        second.write_text("".join([other, *rest]))
        with pytest.raises(LabError, match="different suites"):
            page(picked, tmp_path)
        other = json.dumps({**json.loads(header), "options": {"quick": True}}) + "\n"
        second.write_text("".join([other, *rest]))
        with pytest.raises(LabError, match="different parts of the suite"):
            page(picked, tmp_path)

    def test_the_page_of_a_partial_run_names_its_options(
        self, picked: list[Release], tmp_path: Path
    ) -> None:
        assert "cases of the suite that" not in page(picked, tmp_path)
        for release in picked:
            log = log_file(tmp_path, release)
            header, *rest = log.read_text().splitlines(keepends=True)
            options = {"tags": ["boundary", "invalid"], "against": "auto"}
            other = json.dumps({**json.loads(header), "options": options}) + "\n"
            log.write_text("".join([other, *rest]))
        assert "cases of the suite that `tags: boundary, invalid` selects" in page(picked, tmp_path)

    def test_the_page_in_the_docs_ends_with_the_present_known_faults(self) -> None:
        text = (CHECKOUT / "docs" / "versions.md").read_text("utf-8")
        assert text.endswith(section_of_faults())
        assert "## Not explained" not in text
