"""The Wine lab (`lab/`) has a recipe with digests, translates paths and refuses mistakes.

These tests build no lab; stand-ins take the place of the steps.

The tested code is in `lab/winelab/recipe.py`, `lab/winelab/paths.py`, `lab/winelab/session.py`,
`lab/winelab/isolation.py`, `lab/winelab/build.py`, `lab/winelab/check.py`, `lab/winelab/cli.py`,
`lab/winelab/tree.py`, `lab/recipe.toml`, `lab/smoke.yaml`, `lab/substrate.yaml`,
`schemas/substrate.schema.json` and `dmlconf/excuses/substrate.py`.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dmlconf.backends.protocol import Rejection
from dmlconf.cases.building.build import build as build_case
from dmlconf.catalogue.loader import entry_of
from dmlconf.excuses.substrate import read_substrate
from dmlconf.fuzzing.graphs import graph_case
from dmlconf.resources import cases_directory, schemas_directory

if sys.platform == "win32":
    pytest.skip("the Wine lab is for Linux", allow_module_level=True)

from winelab import build as building
from winelab import cli, isolation
from winelab.build import build, unpack, verified
from winelab.check import check
from winelab.errors import LabError
from winelab.packages import packages_directory
from winelab.paths import translate
from winelab.recipe import CHECKOUT, INGREDIENTS, Lab, Recipe, cache_directory, digest
from winelab.session import environment_for, run
from winelab.tree import windows

LAB = CHECKOUT / "lab"
CURRENT_FOLDER = Path("/any/project")
OTHER_CHECKOUT = Path("/srv/dmlconf")


def lab_script(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(LAB / "lab.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


class TestRecipe:
    def test_the_recipe_has_a_digest_for_every_wheel(self) -> None:
        wheels = Recipe.load().wheels
        assert len(wheels) > 2
        for file, sha256 in wheels.items():
            assert re.fullmatch(r"[\w.]+-[\w.]+-[\w.]+-[\w.]+-(any|win_amd64)\.whl", file)
            assert re.fullmatch(r"[0-9a-f]{64}", sha256)

    def test_requirements_name_version_and_digest_of_each_package(self) -> None:
        recipe = Recipe.load()
        sha256 = recipe.wheels[recipe.wheel("numpy")]
        assert f"numpy==2.0.2 --hash=sha256:{sha256}\n" in recipe.requirements()
        assert recipe.requirements().count("\n") == len(recipe.wheels)

    def test_interpreter_and_directml_are_not_among_the_libraries(self) -> None:
        recipe = Recipe.load()
        apart = {recipe.wheel("panda3d"), recipe.wheel("onnxruntime_directml")}
        assert set(recipe.libraries()) == set(recipe.wheels) - apart

    def test_the_recipe_contains_the_packages_that_runs_import(self) -> None:
        recipe = Recipe.load()
        for name in ("click", "jsonschema", "numpy", "pyyaml", "rich"):
            assert recipe.wheel(name) in recipe.libraries()


class TestDigest:
    @pytest.mark.parametrize("name", INGREDIENTS)
    def test_the_digest_changes_with_each_ingredient(self, name: str, tmp_path: Path) -> None:
        copy = tmp_path / "lab"
        shutil.copytree(LAB, copy)
        assert digest(copy) == digest()
        with (copy / name).open("a") as file:
            file.write("\n")
        assert digest(copy) != digest()

    def test_the_digest_does_not_depend_on_the_list_of_limits(self, tmp_path: Path) -> None:
        copy = tmp_path / "lab"
        shutil.copytree(LAB, copy)
        (copy / "substrate.yaml").unlink()
        assert digest(copy) == digest()


class TestFolder:
    @pytest.mark.parametrize(
        ("environment", "expected"),
        [
            ({"HOME": "/u"}, "/u/.cache/dmlconf/lab"),
            ({"HOME": "/u", "XDG_CACHE_HOME": "/c"}, "/c/dmlconf/lab"),
            ({"HOME": "/u", "XDG_CACHE_HOME": "/c", "DMLCONF_LAB": "/labs"}, "/labs"),
        ],
    )
    def test_variables_of_the_environment_choose_the_folder(
        self, environment: dict[str, str], expected: str
    ) -> None:
        assert cache_directory(environment) == Path(expected)

    def test_the_command_path_prints_the_folder(self, tmp_path: Path) -> None:
        done = lab_script("path", DMLCONF_LAB=str(tmp_path))
        assert (done.returncode, done.stdout) == (0, f"{tmp_path / digest()}\n")


class TestFiles:
    def test_files_of_the_lab_name_no_server_or_private_folder(self) -> None:
        files = [path for path in LAB.rglob("*") if path.suffix in {".py", ".c", ".toml", ".yaml"}]
        files += [CHECKOUT / ".ci/lab", CHECKOUT / "docs/wine-lab.md"]
        assert len(files) > 10
        for path in files:
            content = path.read_text("utf-8")
            assert not re.search(r"https?://(?!microsoft|learn)", content), path
            assert not re.search(r"/(work|root|home|var/tmp)\b", content), path


class TestArguments:
    @pytest.mark.parametrize(
        ("argument", "expected"),
        [
            ("cases/", "cases/"),
            ("./cases", "./cases"),
            ("gather/documented/example-1", "gather/documented/example-1"),
            ("matrix and not FLOAT16", "matrix and not FLOAT16"),
            ("directml:adapter=1,metacommands=off", "directml:adapter=1,metacommands=off"),
            ("https://example.org/x", "https://example.org/x"),
            (f"{CURRENT_FOLDER}/out.xml", "out.xml"),
            (f"junit:{CURRENT_FOLDER}/out.xml", "junit:out.xml"),
            (f"--log={CURRENT_FOLDER}/a/b.jsonl", "--log=a/b.jsonl"),
            (str(CURRENT_FOLDER), "."),
            ("../project/x", "x"),
            (f"{OTHER_CHECKOUT}/cases", r"Z:\checkout\cases"),
            (f"recording:{OTHER_CHECKOUT}/r.json", r"recording:Z:\checkout\r.json"),
        ],
    )
    def test_paths_are_translated_to_those_in_the_lab(self, argument: str, expected: str) -> None:
        assert translate(argument, CURRENT_FOLDER, OTHER_CHECKOUT) == expected

    @pytest.mark.parametrize(
        "argument", ["/tmp/x", "..", "../x", "a/../../x", "junit:/tmp/x", "--log=../x"]
    )
    def test_paths_that_the_lab_cannot_see_are_refused(self, argument: str) -> None:
        with pytest.raises(LabError, match="sees only the current directory and the checkout"):
            translate(argument, CURRENT_FOLDER, OTHER_CHECKOUT)

    def test_paths_of_linux_become_paths_on_drive_z(self) -> None:
        assert windows("/checkout/lab") == r"Z:\checkout\lab"


class TestEnvironment:
    def test_variables_name_directml_and_the_checkout_by_windows_paths(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DMLCONF_LAB", str(tmp_path))
        environment = environment_for({})
        assert environment["DMLCONF_DIRECTML"] == r"Z:\opt\lab\DirectML.dll"
        assert environment["PYTHONPATH"] == r"Z:\checkout"

    def test_the_python_path_has_the_fetched_packages(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DMLCONF_LAB", str(tmp_path))
        packages_directory().mkdir(parents=True)
        assert environment_for({})["PYTHONPATH"] == r"Z:\checkout;Z:\directml\packages"

    def test_only_variables_for_dmlconf_are_taken_from_the_caller(self) -> None:
        caller = {
            "COLUMNS": "70",
            "DMLCONF_SOMETHING": "1",
            "DMLCONF_DIRECTML": "/d.dll",
            "DMLCONF_LAB": "/labs",
            "PYTHONPATH": "/p",
            "DISPLAY": ":0",
            "HOME": "/h",
        }
        own = environment_for({})
        assert environment_for(caller) == {**own, "COLUMNS": "70", "DMLCONF_SOMETHING": "1"}


class TestRefusals:
    def test_the_error_of_an_unbuilt_lab_says_how_to_build_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("winelab.session.require", lambda _: None)
        with pytest.raises(LabError, match=r"not built; build it with: python3 .*lab\.py build"):
            run(Lab(tmp_path / "none"), LAB / "lab.py", [])

    def test_an_ordinary_user_is_asked_to_be_root(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.geteuid", lambda: 1000)
        with pytest.raises(LabError, match="as root"):
            isolation.require({})

    def test_the_error_of_a_missing_command_names_its_package(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("os.geteuid", lambda: 0)
        with pytest.raises(
            LabError, match="no-such-command; on Debian: apt-get install its-package"
        ):
            isolation.require({"no-such-command": "its-package", "sh": "dash"})

    def test_a_system_other_than_linux_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.platform", "darwin")
        with pytest.raises(LabError, match="needs Linux"):
            isolation.require({})

    def test_an_error_has_exit_code_4_and_one_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("DMLCONF_LAB", str(tmp_path))
        monkeypatch.setattr("os.geteuid", lambda: 1000)
        assert cli.main(["run", "--", "--version"]) == 4
        message = capsys.readouterr().err
        assert message.startswith("lab: ")
        assert message.count("\n") == 1

    @pytest.mark.parametrize("arguments", [[], ["fly"], ["build", "--fast"]])
    def test_wrong_usage_has_exit_code_2(self, arguments: list[str]) -> None:
        assert lab_script(*arguments).returncode == 2


class TestBuild:
    @pytest.fixture
    def lab(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
        monkeypatch.setattr(building, "_install_what_is_missing", lambda: None)
        return Lab(tmp_path / "cache" / "0123")

    @staticmethod
    def supervised(monkeypatch: pytest.MonkeyPatch, code: int) -> list[list[str]]:
        """Replace the build by a step that ends with this code; return the list of its calls."""
        calls: list[list[str]] = []

        def supervise(command: list[str], *, network: bool) -> int:
            assert network
            calls.append(command)
            (Path(command[-1]) / "tree").mkdir()
            return code

        monkeypatch.setattr(building, "supervise", supervise)
        return calls

    def test_a_lab_is_built_as_unfinished_and_then_renamed(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = self.supervised(monkeypatch, 0)
        build(lab, Path("script"))
        assert lab.is_built()
        assert calls == [[sys.executable, "script", "_build", str(lab.unfinished)]]

    def test_a_built_lab_is_not_built_again(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = self.supervised(monkeypatch, 0)
        build(lab, Path("script"))
        build(lab, Path("script"))
        assert len(calls) == 1

    def test_a_failed_build_leaves_no_files(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.supervised(monkeypatch, 1)
        with pytest.raises(LabError, match="not built"):
            build(lab, Path("script"))
        assert not lab.is_built()
        assert not lab.unfinished.exists()

    def test_files_of_a_killed_build_do_not_disturb_another(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (lab.unfinished / "tree").mkdir(parents=True)
        self.supervised(monkeypatch, 0)
        build(lab, Path("script"))
        assert lab.is_built()

    def test_remove_all_deletes_every_lab(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self.supervised(monkeypatch, 0)
        for each in (lab, Lab(lab.path.with_name("4567"))):
            build(each, Path("script"))
            assert each.is_built()
        monkeypatch.setenv("DMLCONF_LAB", str(lab.path.parent))
        assert cli.main(["remove", "--all"]) == 0
        assert not any(lab.path.parent.iterdir())


def wheel(path: Path, members: dict[str, bytes]) -> str:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    path.write_bytes(content.getvalue())
    return hashlib.sha256(content.getvalue()).hexdigest()


class TestUnpack:
    @pytest.fixture
    def recipe(self, tmp_path: Path) -> Recipe:
        """Write three small wheels and a standard library; return their recipe."""
        (tmp_path / "wheels").mkdir()
        (tmp_path / "stdlib/test").mkdir(parents=True)
        (tmp_path / "stdlib/os.py").touch()
        real = Recipe.load()
        folder = real.python["folder"]
        members = {
            "panda3d-1.whl": {
                f"{folder}python311.dll": b"python",
                f"{folder}_ctypes.pyd": b"ctypes",
                f"{folder}_tkinter.pyd": b"tk",
                f"{folder}other.dll": b"other",
                "other.py": b"",
            },
            "onnxruntime_directml-1.whl": {real.directml["member"]: b"DirectML"},
            "numpy-1.whl": {"numpy/__init__.py": b""},
        }
        return Recipe(
            debian={},
            python=real.python,
            directml={**real.directml, "sha256": hashlib.sha256(b"DirectML").hexdigest()},
            wheels={file: wheel(tmp_path / "wheels" / file, m) for file, m in members.items()},
        )

    @staticmethod
    def unpacked(recipe: Recipe, folder: Path) -> set[str]:
        tree = folder / "tree"
        unpack(recipe, folder / "wheels", folder / "stdlib", tree)
        return {str(path.relative_to(tree / "opt/lab")) for path in tree.rglob("*.*")}

    def test_unpacking_puts_each_file_where_windows_python_looks(
        self, recipe: Recipe, tmp_path: Path
    ) -> None:
        assert self.unpacked(recipe, tmp_path) == {
            "DirectML.dll",
            "python/python311.dll",
            "python/DLLs/_ctypes.pyd",
            "python/Lib/os.py",
            "python/Lib/site-packages/numpy/__init__.py",
        }

    def test_a_wheel_with_another_digest_is_refused(self, recipe: Recipe, tmp_path: Path) -> None:
        with (tmp_path / "wheels/numpy-1.whl").open("ab") as file:
            file.write(b"more")
        with pytest.raises(LabError, match=r"numpy-1\.whl: SHA-256 is"):
            self.unpacked(recipe, tmp_path)

    def test_a_directml_with_another_digest_is_refused(
        self, recipe: Recipe, tmp_path: Path
    ) -> None:
        changed = Recipe(
            recipe.debian, recipe.python, {**recipe.directml, "sha256": "0" * 64}, recipe.wheels
        )
        with pytest.raises(LabError, match=r"DirectML\.dll: SHA-256 is"):
            self.unpacked(changed, tmp_path)

    def test_verified_returns_the_content_if_its_digest_is_right(self) -> None:
        assert verified(b"x", hashlib.sha256(b"x").hexdigest(), "x") == b"x"


class TestCheck:
    @staticmethod
    def checked(codes: dict[str, int]) -> tuple[int, list[str]]:
        """Return the exit code of the check, and its commands, which end with `codes` or with 0."""
        calls: list[str] = []

        def python(*arguments: str) -> int:
            calls.append(arguments[2] if arguments[0] == "-m" else arguments[0])
            return codes.get(calls[-1], 0)

        return check(python), calls

    def test_the_check_runs_an_identity_on_directml_last(self) -> None:
        assert self.checked({}) == (0, ["-c", "devices", "run"])

    @pytest.mark.parametrize("step", ["-c", "devices", "run"])
    def test_the_check_fails_if_a_step_fails(self, step: str) -> None:
        code, calls = self.checked({step: 4})
        assert code == 4
        assert calls[-1] == step

    def test_the_identity_case_expects_its_own_input_without_zeros(self) -> None:
        (case,) = yaml.safe_load((LAB / "smoke.yaml").read_text("utf-8"))["cases"]
        values = case["desc"]["InputTensor"]["values"]
        assert case["expect"]["OutputTensor"] == values
        assert all(value for row in values for value in row)


class TestSubstrate:
    @pytest.fixture
    def substrate(self) -> Any:
        return yaml.safe_load((LAB / "substrate.yaml").read_text("utf-8"))

    @staticmethod
    def problems(document: Any) -> list[str]:
        schema = json.loads((schemas_directory() / "substrate.schema.json").read_text("utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        return [e.message for e in jsonschema.Draft202012Validator(schema).iter_errors(document)]

    def test_the_list_of_limits_fits_its_schema(self, substrate: Any) -> None:
        assert self.problems(substrate) == []

    def test_a_limit_on_wrong_values_must_be_narrowed(self, substrate: Any) -> None:
        wrong = {**substrate["limits"][0], "stage": "Execute", "hresult": "S_OK"}
        for narrowed in ({"cases": ["tile/boundary/x"]}, {"circumstance": "volatile"}):
            substrate["limits"] = [wrong | narrowed]
            assert self.problems(substrate) == []
        substrate["limits"] = [wrong]
        [problem] = self.problems(substrate)
        assert problem.endswith("is not valid under any of the given schemas")

    def test_names_of_limits_differ(self, substrate: Any) -> None:
        names = [limit["name"] for limit in substrate["limits"]]
        assert len(set(names)) == len(names)

    def test_named_operators_tensors_and_cases_exist(self, substrate: Any) -> None:
        for limit in substrate["limits"]:
            for name in limit["operators"] if limit["operators"] != "any" else []:
                fields = {field.name for field in entry_of(name).fields}
                assert limit["data_types"] == "any" or set(limit["data_types"]) <= fields
            for identifier in limit.get("cases", []):
                folder, file, *cases = identifier.split("/")
                if file.startswith("fuzz-"):
                    continue  # A generated case, which is in no file.
                [case] = cases
                content = (cases_directory() / folder / f"{file}.yaml").read_text("utf-8")
                assert f"  - name: {case}\n" in content

    def test_the_limit_on_graphs_explains_only_its_operators(self) -> None:
        limits = read_substrate(LAB / "substrate.yaml").limits
        [limit] = (each for each in limits if each.name == "kernels-in-dxil-only-in-graphs")
        case = build_case(graph_case(["ELEMENT_WISE_ADD"], 1, 0, 2))
        refusal = Rejection("CompileGraph", "E_FAIL")
        assert limit.explains(case, refusal)
        assert limit.explains(replace(case, identifier="graphs/of-a-user/0"), refusal)
        other = build_case(graph_case(["ACTIVATION_RELU"], 1, 0, 2))
        assert not limit.explains(other, refusal)
