"""Options come from the configuration file, its profiles and environment variables.

`dmlconf config` shows which options are set, and where each comes from.

The tested code is in `dmlconf/cli/common/configuration.py`, `dmlconf/cli/common/command.py`,
`dmlconf/cli/options/selection.py`, `dmlconf/cli/commands/results/report.py` and
`dmlconf/cli/commands/running/config.py`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click import Context

from dmlconf.cli.common.configuration import COMMANDS
from dmlconf.cli.entry_point import cli
from tests.cli.process import dmlconf_here, write

CONFIGURATION = """
backend = "faulty:zeros"
tag = ["tile"]

[profile.ci]
report = ["junit:out.xml"]
fail-on = "unchecked"

[profile.reference]
backend = ["numpy"]

[list]
json = true
"""
"""A configuration file; its first line is empty."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder below that of the configuration file."""
    below = tmp_path / "project" / "cases"
    below.mkdir(parents=True)
    write(below)
    (below.parent / "dmlconf.toml").write_text(CONFIGURATION, encoding="utf-8")
    return below


def test_options_come_from_the_nearest_configuration_file_above(folder: Path) -> None:
    (folder.parent.parent / "dmlconf.toml").write_text('backend = "numpy"\n', encoding="utf-8")
    assert dmlconf_here(folder, "run", "tile.yaml").returncode == 1
    assert dmlconf_here(folder, "run", "tile.yaml", "-b", "numpy").returncode == 0
    listed = dmlconf_here(folder, "list", "tile.yaml")
    assert [case["case"] for case in json.loads(listed.stdout)] == ["tile/tile/stated"]


def test_options_override_environment_profile_and_file(
    folder: Path,
) -> None:
    run = ["run", "tile.yaml", "--config-profile", "reference"]
    assert dmlconf_here(folder, *run).returncode == 0
    zeros = {"DMLCONF_RUN_BACKEND": "faulty:zeros"}
    assert dmlconf_here(folder, *run, **zeros).returncode == 1
    assert dmlconf_here(folder, *run, "-b", "numpy", **zeros).returncode == 0


def test_a_wrong_value_of_an_environment_variable_names_the_variable(folder: Path) -> None:
    for variable, value, message in (
        ("DMLCONF_RUN_JOBS", "many", "neither a whole number from 1 to 1,024 nor auto"),
        ("DMLCONF_RUN_WHERE", "Rank >", "it ends too early; a condition is such as"),
        ("DMLCONF_RUN_FEATURE_LEVEL", "9_9", "the levels are 1_0"),
    ):
        done = dmlconf_here(folder, "run", "tile.yaml", **{variable: value})
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.endswith(f" (from {variable})\n")


def test_an_environment_variable_may_name_a_profile(folder: Path) -> None:
    done = dmlconf_here(folder, "run", "tile.yaml", DMLCONF_RUN_CONFIG_PROFILE="ci")
    assert (folder / "out.xml").exists()
    assert "--profile" not in done.stderr  # No notice on the old option `--profile`.


def test_the_old_option_profile_works_with_a_notice(folder: Path) -> None:
    notice = "--profile reference names a profile of the configuration file: use --config-profile"
    for arguments, variables in (
        (["--profile", "reference"], {}),
        ([], {"DMLCONF_RUN_PROFILE": "reference"}),
    ):
        done = dmlconf_here(folder, "run", "tile.yaml", *arguments, **variables)
        assert done.returncode == 0
        assert notice in done.stderr
    done = dmlconf_here(folder, "config", "--profile", "reference")
    assert "profile reference" in done.stdout
    assert "use --config-profile reference" in done.stderr


def test_both_kinds_of_profile_can_be_given(
    folder: Path,
) -> None:
    write(folder, name="documented.yaml")  # A tensor of one dimension needs level 3_1.
    both = ["list", "documented.yaml", "--tag", "documented", "--config-profile", "reference"]
    assert dmlconf_here(folder, *both, "--profile", "6_4").returncode == 0
    assert dmlconf_here(folder, *both, "--profile", "1_0").returncode == 5


def test_an_unknown_configuration_profile_is_refused(folder: Path) -> None:
    for name in ("ci2", "6_4"):
        wrong = dmlconf_here(folder, "list", "tile.yaml", "--config-profile", name)
        assert wrong.returncode == 2
        assert f"{name}: {folder.parent / 'dmlconf.toml'}: its profiles are" in wrong.stderr


def test_a_profile_without_a_configuration_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    done = dmlconf_here(tmp_path, "list", "tile.yaml", "--config-profile", "ci")
    assert done.returncode == 2
    assert "ci: there is no configuration file (dmlconf.toml or pyproject.toml)" in done.stderr


def test_an_unknown_profile_means_a_certification_profile(folder: Path) -> None:
    write(folder, name="documented.yaml")  # A tensor of one dimension needs level 3_1.
    level = ["list", "documented.yaml", "--tag", "documented", "--profile"]
    assert dmlconf_here(folder, *level, "6_4").returncode == 0
    assert dmlconf_here(folder, *level, "1_0").returncode == 5
    wrong = dmlconf_here(folder, *level, "cy")
    assert wrong.returncode == 2
    assert "there is no profile cy" in wrong.stderr
    assert "those of the configuration file are ci, reference" in wrong.stderr


def test_all_commands_but_seven_may_be_configured() -> None:
    without = {"capture", "config", "doctor", "faults", "history", "import", "new"}
    assert set(cli.list_commands(Context(cli))) - set(COMMANDS) == without


def test_list_run_and_validate_use_the_files_paths(folder: Path) -> None:
    (folder / "dmlconf.toml").write_text('paths = ["tile.yaml"]', encoding="utf-8")
    for command in ("list", "run", "validate"):
        done = dmlconf_here(folder, command)
        assert re.search(r"(^|\s)1 case\b", done.stdout + done.stderr), command


def test_certification_commands_read_only_their_own_tables(tmp_path: Path) -> None:
    write(tmp_path, name="documented.yaml")
    (tmp_path / "dmlconf.toml").write_text(
        'paths = ["absent"]\nbackend = "faulty:zeros"\nsubstrate = "absent.yaml"\n'
        '[certify]\nbackend = "numpy"\njobs = 1\n[profile."6_4"]\ntimeout = 5\n'
        '[verify]\nkey = "mine.pub.pem"\n[sign]\nkey = "mine.pem"\n[waive]\nlink = "none"\n',
        "utf-8",
    )
    set_by_file = {}
    for name in ("certify", "verify", "sign", "waive"):
        rows = json.loads(dmlconf_here(tmp_path, "config", name, "--json").stdout)["options"]
        set_by_file[name] = {row["option"] for row in rows if row["from"] != "default"}
    assert set_by_file == {
        "certify": {"backend", "jobs"},
        "verify": {"key"},
        "sign": {"key"},
        "waive": {"link"},
    }
    certify = ["certify", "documented.yaml", "-o", "a.dmlcert", "--profile"]
    done = dmlconf_here(tmp_path, *certify, "6_4")
    assert done.returncode == 0, done.stderr
    assert "profile 6_4, 1 passed" in done.stdout
    unknown = dmlconf_here(tmp_path, *certify, "ci")
    assert unknown.returncode == 2
    assert "configuration file" not in unknown.stderr


def test_pyproject_toml_may_have_the_options(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n\n[tool.dmlconf]\nbackend = ["faulty:zeros"]\n', "utf-8"
    )
    assert dmlconf_here(tmp_path, "run", "tile.yaml").returncode == 1
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n', "utf-8")
    assert dmlconf_here(tmp_path, "run", "tile.yaml").returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jbos = 2\n", ":1:1: run has no option jbos"),
        ("jbos = 2\n", "hint: did you mean jobs?"),
        ("\nquiet = 1\n", ":2:1: 1 is not true or false"),
        ("[profile.ci]\ntimeout = 'long'\n", ":2:1: 'long' is not a number"),
        ("tag = [1.5]\n", ":1:1: [1.5] is not a string or a list of strings"),
        ('log = "a\\u0000b"\n', ":1:1: 'a\\x00b' is not text without NUL characters"),
        ("[rum]\nquiet = true\n", ":1:2: there is no command rum to configure"),
        ("[record]\nquick = 'a'\n", ":2:1: 'a' is not true or false"),
        ("profile = 'ci'\n", ":1:1: `profile` is a table of profiles"),
        ("jobs = 2\nfail-on = 'unchekd'\n", ":2:1: 'unchekd' is not one of unchecked"),
        ("feature-level = '9_9'\n", ":1:1: there is no feature level 9_9"),
        ("jobs = = 2\n", ":1:8: Invalid value"),
        ("quiet = true\noperator = [\n", ":2:13: Invalid value"),
        ("failed = 'latest'\n", ":1:1: run has no option failed"),
    ],
)
def test_a_mistake_in_the_file_is_shown_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    write(tmp_path)
    (tmp_path / "dmlconf.toml").write_text(text, "utf-8")
    done = dmlconf_here(tmp_path, "run", "tile.yaml")
    assert done.returncode == 3
    assert message in done.stderr, done.stderr


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "dmlconf.toml").write_bytes(b"# caf\xe9\njobs = 2\n")
    done = dmlconf_here(tmp_path, "run", "tile.yaml")
    assert done.returncode == 3
    assert "dmlconf.toml: is not UTF-8: byte 0xe9" in done.stderr
    assert "hint: save the file as UTF-8" in done.stderr


def test_config_shows_set_options_and_their_origins(folder: Path) -> None:
    file = folder.parent / "dmlconf.toml"
    variables = {"DMLCONF_RUN_TIMEOUT": "7"}
    done = dmlconf_here(folder, "config", "--config-profile", "ci", **variables)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        str(file),
        "profiles: ci, reference",
        f'  backend = ["faulty:zeros"]  ({file}:2)',
        f'  tag = ["tile"]  ({file}:3)',
        '  timeout = "7"  (DMLCONF_RUN_TIMEOUT)',
        f'  fail-on = ["unchecked"]  ({file}:7, profile ci)',
        f'  report = ["junit:out.xml"]  ({file}:6, profile ci)',
    ]
    as_json = json.loads(dmlconf_here(folder, "config", "list", "--json").stdout)
    origins = {row["option"]: row["from"] for row in as_json["options"]}
    assert origins == {"tag": f"{file}:3", "json": f"{file}:13"}
    everything = dmlconf_here(folder, "config", "--all").stdout
    assert "  repeat = 1  (default)" in everything


def test_options_of_one_run_in_the_file_leave_scoreboards_as_they_are(folder: Path) -> None:
    path = write(folder)
    assert dmlconf_here(folder, "run", path, "--log", "run.jsonl").returncode == 1
    settings = "[report]\nverbose = true\ndurations = 3\n"
    (folder / "dmlconf.toml").write_text(settings, encoding="utf-8")
    one = dmlconf_here(folder, "report", "run.jsonl")
    assert "Slowest" in one.stdout, one.stdout
    done = dmlconf_here(folder, "report", "run.jsonl", "run.jsonl", DMLCONF_REPORT_VERBOSE="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("Operator")


def test_config_without_a_file_says_so(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "config")
    assert done.stdout.splitlines() == [
        "no file: neither dmlconf.toml nor pyproject.toml",
        "every option of run has its default",
    ]


@pytest.mark.parametrize(
    "text", ["[tool]\ndmlconf = 5\n", "tool.dmlconf = 5\n", "[[tool.dmlconf]]\nquiet = true\n"]
)
def test_tool_dmlconf_in_pyproject_must_be_a_table(tmp_path: Path, text: str) -> None:
    write(tmp_path)
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    done = dmlconf_here(tmp_path, "list", "tile.yaml")
    assert done.returncode == 3
    assert "tool.dmlconf must be a table, not " in done.stderr
    assert "hint: write options below [tool.dmlconf]" in done.stderr


@pytest.mark.parametrize("text", ["[tool]\ndmlconf.tag = ['x']\n", "tool.dmlconf.tag = 'x'\n"])
def test_a_table_may_be_written_with_dots(tmp_path: Path, text: str) -> None:
    write(tmp_path)
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    # No case has the tag x.
    assert dmlconf_here(tmp_path, "list", "tile.yaml").returncode == 5
