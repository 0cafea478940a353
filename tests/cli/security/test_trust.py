"""A configuration file in a stranger's checkout must be allowed before it can do harm.

`dmlconf config allow` permits it to load code, to reach the network, to write outside its folder,
and to say what a certificate must meet.

The tested code is in `dmlconf/cli/common/trust.py`, `dmlconf/cli/common/configuration.py` and
`dmlconf/cli/commands/running/config.py`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.process import dmlconf_here, write
from tests.fleet.lab_backend import install


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a case, and with a link to the folder `elsewhere` outside."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    write(folder)
    (tmp_path / "elsewhere").mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    return folder


def configured(folder: Path, text: str) -> None:
    (folder / "dmlconf.toml").write_text(f'paths = ["tile.yaml"]\n{text}\n', encoding="utf-8")


def run(folder: Path, *arguments: str, command: str = "run") -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with a file of permissions outside it."""
    state = str(folder.parent / "state")
    return dmlconf_here(folder, command, *arguments, XDG_STATE_HOME=state)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ('directml = "evil.so"\nbackend = "directml"', "directml loads a library"),
        ('backend = "directml:path=evil.so"', "backend loads a library"),
        ('scheduler = "tcp://192.0.2.1:8786"', "scheduler reaches the network"),
        ('report = ["json", "html:../elsewhere/x.html"]', "report writes "),
        ('report = "json:link/x.json"', "report writes "),
        ('log = "/tmp/planted.jsonl"', "log writes /tmp/planted.jsonl"),
        ('dump = ".."', "dump writes "),
        ('report = "text:.git/config"', "report writes "),
        ('log = ".GIT/hooks/post-checkout"', "log writes "),
    ],
)
def test_settings_that_can_do_harm_must_be_allowed(
    checkout: Path, setting: str, reason: str
) -> None:
    configured(checkout, setting)
    done = run(checkout)
    assert done.returncode == 3
    assert "dmlconf.toml:2:1" in done.stderr or "dmlconf.toml:3:1" in done.stderr
    assert reason in done.stderr
    assert "dmlconf config allow" in done.stderr
    assert not list((checkout.parent / "elsewhere").iterdir())
    assert not Path("/tmp/planted.jsonl").exists()


@pytest.mark.parametrize(
    "setting",
    [
        'report = ["json:out/x.json", "junit:x.xml"]',
        'log = "run.jsonl"',
        'backend = "numpy"\nmin-passed = 98\ntimeout = 60',
    ],
)
def test_settings_that_write_only_in_their_folder_need_no_permission(
    checkout: Path, setting: str
) -> None:
    configured(checkout, setting)
    done = run(checkout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_plugin_that_the_file_names_must_be_allowed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(checkout.parent / "plugins")
    monkeypatch.syspath_prepend(checkout.parent / "plugins")
    configured(checkout, 'backend = "lab"')
    done = run(checkout)
    assert done.returncode == 3
    assert "backend loads the plugin lab" in done.stderr


def test_plugin_of_option_also_must_be_allowed(checkout: Path) -> None:
    configured(checkout, '[diagnose]\nalso = "evil"')
    done = run(checkout, "tile/case", command="diagnose")
    assert done.returncode == 3
    assert "also loads the plugin evil" in done.stderr


@pytest.mark.parametrize(
    "setting",
    ['allow-backend = "numpy"', 'max-waived = "100%"', 'key = "their.pub.pem"', 'paths = "."'],
)
def test_demands_on_certificates_must_be_allowed(checkout: Path, setting: str) -> None:
    configured(checkout, f"[verify]\n{setting}")
    done = run(checkout, "it.dmlcert", command="verify")
    assert done.returncode == 3
    assert "decides what a certificate must meet" in done.stderr
    assert "dmlconf config allow" in done.stderr


@pytest.mark.parametrize("text", ['paths = "{}"\n[record]', '[record]\npaths = "{}"'])
def test_recording_into_cases_elsewhere_must_be_allowed(checkout: Path, text: str) -> None:
    case = write(checkout.parent / "elsewhere")
    before = case.read_text()
    setting = text.format("../elsewhere") + "\ninto-case = true"
    (checkout / "dmlconf.toml").write_text(setting, encoding="utf-8")
    done = run(checkout, "-b", "faulty:zeros,on=none", command="record")
    assert done.returncode == 3
    assert "paths writes " in done.stderr
    assert case.read_text() == before
    allowed = run(checkout, "allow", command="config")
    assert "outside the file's folder: paths, line " in allowed.stdout


def test_recordings_beside_an_operators_folder_must_be_allowed(checkout: Path) -> None:
    """For `tile/tile.yaml`, `record` writes beside the folder `tile`."""
    folder = checkout / "tile"
    folder.mkdir()
    write(folder)
    (folder / "dmlconf.toml").write_text('[record]\npaths = ["."]', encoding="utf-8")
    done = run(folder, "-b", "faulty:zeros,on=none", command="record")
    assert done.returncode == 3
    assert "paths writes " in done.stderr
    assert not list(checkout.glob("*.dmlrec"))


def test_overridden_option_needs_no_permission(checkout: Path) -> None:
    configured(checkout, 'report = "json:../elsewhere/x.json"')
    assert run(checkout, "--report", "json:x.json").returncode == 0


def test_a_permission_holds_until_the_file_changes(checkout: Path) -> None:
    setting = 'report = "json:../elsewhere/x.json"'
    configured(checkout, setting)
    allowed = run(checkout, "allow", command="config")
    assert allowed.returncode == 0
    assert "report, line 2" in allowed.stdout
    assert run(checkout).returncode == 0
    assert (checkout.parent / "elsewhere" / "x.json").is_file()
    configured(checkout, setting + "\ntimeout = 5")
    assert run(checkout).returncode == 3


def test_permission_does_not_follow_a_moved_file(checkout: Path) -> None:
    configured(checkout, 'report = "json:../elsewhere/x.json"')
    assert run(checkout, "allow", command="config").returncode == 0
    other = checkout.parent / "other"
    checkout.rename(other)
    assert run(other).returncode == 3


def test_a_permission_can_be_withdrawn(checkout: Path) -> None:
    configured(checkout, 'report = "json:../elsewhere/x.json"')
    assert run(checkout, "allow", command="config").returncode == 0
    assert "no longer allowed" in run(checkout, "deny", command="config").stdout
    assert "was not allowed" in run(checkout, "deny", command="config").stdout
    assert run(checkout).returncode == 3


def test_option_trust_config_allows_the_file_for_one_run(checkout: Path) -> None:
    configured(checkout, 'report = "json:../elsewhere/x.json"')
    assert run(checkout, "--trust-config").returncode == 0
    assert run(checkout).returncode == 3


def test_the_file_cannot_grant_its_own_permission(checkout: Path) -> None:
    configured(checkout, "trust-config = true")
    done = run(checkout)
    assert done.returncode == 3
    assert "no option trust-config" in done.stderr


def test_config_shows_permission_and_settings_that_need_it(checkout: Path) -> None:
    configured(checkout, 'scheduler = "tcp://192.0.2.1:8786"')
    assert "not allowed" in run(checkout, command="config").stdout
    data = json.loads(run(checkout, "--json", command="config").stdout)
    assert not data["allowed"]
    [scheduler] = [row for row in data["options"] if row["option"] == "scheduler"]
    assert scheduler["needs"].startswith("reaches the network")
    run(checkout, "allow", command="config")
    assert "not allowed" not in run(checkout, command="config").stdout


def test_config_allow_gives_inline_tables_no_line_number(checkout: Path) -> None:
    configured(checkout, 'verify = {max-waived = "100%"}\ndirectml = "evil.so"')
    done = run(checkout, "allow", command="config")
    assert done.stdout.splitlines()[1:] == [
        "  loads a library: directml, line 3",
        "  decides what a certificate must meet: max-waived",
    ]


def test_allowing_without_a_configuration_file_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "allow", command="config")
    assert done.returncode == 2
    assert "there is no file to allow" in done.stderr
