"""Commands write, replace and remove only the files that they may.

The tested code is in `dmlconf/cli/output/files.py`, `dmlconf/cli/output/preflight.py`,
`dmlconf/cli/common/logs.py`, `dmlconf/cli/options/reporting.py`,
`dmlconf/documents/recognition.py` and, for what a command writes besides reports and logs, in the
command's own module below `dmlconf/cli/commands/`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from dmlconf.resources import cases_directory
from dmlconf.run_log.log import read_log
from tests.cli.process import MANY, beginning, dmlconf_here, text_of, write


@pytest.mark.parametrize(
    "arguments",
    [
        ["--report", "json:x", "--report", "junit:x"],
        ["--log", "x", "--report", "json:./x"],
    ],
)
def test_two_outputs_to_the_same_file_are_refused(tmp_path: Path, arguments: list[str]) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path), *arguments)
    assert done.returncode == 2
    assert "x would be written twice" in done.stderr
    assert not (tmp_path / "x").exists()


def test_report_does_not_replace_its_log(tmp_path: Path) -> None:
    dmlconf_here(tmp_path, "run", write(tmp_path), "--log", "log.jsonl")
    done = dmlconf_here(tmp_path, "report", "log.jsonl", "--report", "json:log.jsonl")
    assert done.returncode == 2
    assert "log.jsonl would be written twice" in done.stderr
    assert read_log(tmp_path / "log.jsonl").verdicts


def test_report_file_of_two_backends_is_refused(tmp_path: Path) -> None:
    backends = ["-b", "numpy", "-b", "faulty:zeros"]
    done = dmlconf_here(tmp_path, "run", write(tmp_path), *backends, "--report", "json:x")
    assert done.returncode == 2
    assert "takes one backend" in done.stderr


def test_record_refuses_an_output_file_without_suffix_dmlrec(
    tmp_path: Path,
) -> None:
    """`-o TILE` looks like `--operator TILE`."""
    (tmp_path / "TILE").write_text("mine", encoding="utf-8")
    done = dmlconf_here(tmp_path, "record", write(tmp_path), "-b", "numpy", "-o", "TILE")
    assert done.returncode == 2
    assert "to select an operator, use --operator" in done.stderr
    assert (tmp_path / "TILE").read_text("utf-8") == "mine"


def test_old_logs_except_the_20_latest_are_removed(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(40):
        log = logs / f"run-20200101T0000{number:02}.0-1.jsonl"
        log.touch()
        if number < 10 or number >= 35:
            os.utime(log, (0, 0))
    assert dmlconf_here(tmp_path, "run", write(tmp_path)).returncode == 0
    kept = sorted(path.name for path in logs.iterdir())
    assert len(kept) == 30 + 1  # One is of this run.
    # Logs 10 to 34 are younger than a day, and logs 35 to 39 are among the 20 latest.
    assert kept[:-1] == [f"run-20200101T0000{number}.0-1.jsonl" for number in range(10, 40)]


CONTENTS = {
    "case.yaml": "operator: TILE\ncases:\n  - {name: x, desc: {}}\n",
    "graph.txt": "graph: some\ncases: []\n",
    "shared.yaml": "operators: [TILE]\ncases:\n  - {name: x, desc: {}}\n",
    "key.pem": "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----\n",
    "kernel.hlsl": "[numthreads(1, 1, 1)]\nvoid main() {}\n",
    "script": "#!/bin/sh\necho\n",
    "Makefile": "all:\n\ttrue\n",
    "waivers.txt": "waivers:\n  - case: tile/x\n",
}
"""Files that people write, by name."""


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("option", ["--report=json:{}", "--report=text:{}", "--log={}"])
def test_case_files_keys_waivers_and_source_code_are_never_overwritten(
    tmp_path: Path, name: str, option: str
) -> None:
    file = tmp_path / name
    file.write_text(CONTENTS[name], encoding="utf-8")
    done = dmlconf_here(tmp_path, "run", write(tmp_path), option.format(name))
    assert done.returncode == 2, done.stderr
    assert "which would be overwritten; name another file" in done.stderr
    assert file.read_text("utf-8") == CONTENTS[name]


def test_a_file_named_by_way_of_a_new_folder_is_not_overwritten(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text(CONTENTS["key.pem"], encoding="utf-8")
    for option in ("--report=json:new/../key.pem", "--log=new/../key.pem"):
        done = dmlconf_here(tmp_path, "run", write(tmp_path), option)
        assert done.returncode == 2, done.stderr
        assert "is a key, which would be overwritten; name another file" in done.stderr
    assert key.read_text("utf-8") == CONTENTS["key.pem"]
    assert not (tmp_path / "new").exists()


def test_a_file_that_a_run_reads_is_never_overwritten(tmp_path: Path) -> None:
    write(tmp_path)
    earlier = tmp_path / "earlier.jsonl"
    assert dmlconf_here(tmp_path, "run", "tile.yaml", "--log", earlier).returncode == 0
    (tmp_path / "list.txt").write_text("tile/tile/stated\n", encoding="utf-8")
    (tmp_path / "link.txt").symlink_to("list.txt")
    runs = [
        ("--log", "tile.yaml"),
        ("--slower-than", "earlier.jsonl", "--log", "earlier.jsonl"),
        ("--slower-than", "earlier.jsonl", "--log", "./earlier.jsonl"),
        ("--shard", "1/1", "--shard-by", "earlier.jsonl", "--log", "earlier.jsonl"),
        ("--cases", "list.txt", "--report", "json:list.txt"),
        ("--cases", "list.txt", "--report", "json:link.txt"),
        ("--cases", "list.txt", "--log", "list.txt"),
    ]
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for options in runs:
        done = dmlconf_here(tmp_path, "run", "tile.yaml", *options)
        assert done.returncode == 2, options
        assert "is a file that this command reads; name another one" in done.stderr, options
    assert {path: path.read_bytes() for path in before} == before


def test_report_replaces_a_report_and_log_a_log(tmp_path: Path) -> None:
    reports = [f"--report={name}:x-{name}" for name in ("json", "junit", "markdown", "svg", "text")]
    run: list[str | Path] = ["run", write(tmp_path), "--log", "x.jsonl", *reports]
    assert dmlconf_here(tmp_path, *run).returncode == 0
    before = {path: path.read_bytes() for path in tmp_path.glob("x*")}
    assert len(before) == 1 + len(reports)
    assert dmlconf_here(tmp_path, *run, "-b", "faulty:zeros").returncode == 1
    assert [path.name for path, old in before.items() if path.read_bytes() == old] == []


def test_other_commands_replace_no_file_of_another_kind(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    assert dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "log.jsonl").returncode == 0
    record = ("record", "tile.yaml", "-b", "numpy", "-o")
    assert dmlconf_here(tmp_path, *record, "x.dmlrec").returncode == 0
    assert dmlconf_here(tmp_path, *record, "x.dmlrec").returncode == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    overwritten = "which would be overwritten; name another file"
    no_recording = "is neither a folder nor a name that ends in .dmlrec"
    for arguments, message in (
        (("report", "log.jsonl", "--report", "json:tile.yaml"), overwritten),
        (("compare", "log.jsonl", "log.jsonl", "--report", "json:x.dmlrec"), overwritten),
        (("merge", "log.jsonl", "-o", "tile.yaml"), overwritten),
        ((*record, "tile.yaml"), no_recording),
        ((*record, "log.jsonl"), no_recording),
    ):
        done = dmlconf_here(tmp_path, *arguments)
        assert done.returncode == 2, arguments
        assert message in done.stderr, arguments
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("command", ["coverage -o TILE", "coverage --questions", "strength"])
def test_a_report_into_a_folder_is_refused_before_the_work(tmp_path: Path, command: str) -> None:
    write(tmp_path)
    done = dmlconf_here(tmp_path, *command.split(), "tile.yaml", "--report", "json:.")
    assert done.returncode == 2
    assert "--report json:. cannot be written: Is a directory" in done.stderr
    assert not done.stdout


def test_a_log_replaces_no_text(tmp_path: Path) -> None:
    write(tmp_path)
    assert dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "log.jsonl").returncode == 0
    notes = tmp_path / "notes.txt"
    notes.write_text("My notes.\n", encoding="utf-8")
    for arguments, what in (
        (("run", "tile.yaml", "--log", notes), "--log {} is not a run log"),
        (("fuzz", "-b", "numpy", "--cases", "1", "--log", notes), "--log {} is not a run log"),
        (("merge", "log.jsonl", "-o", notes), "-o {} is not a run log"),
    ):
        done = dmlconf_here(tmp_path, *arguments)
        assert done.returncode == 2, arguments
        what = f"{what.format(notes)} and would be overwritten; name another file or remove it"
        assert what in done.stderr, arguments
        assert notes.read_text("utf-8") == "My notes.\n"


@pytest.mark.parametrize("content", ["", '{"record":"hea', '{"rec\0\0\0', "\0\0"])
def test_a_log_replaces_an_empty_file_or_one_that_was_cut_off(tmp_path: Path, content: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(content, encoding="utf-8")
    assert dmlconf_here(tmp_path, "run", write(tmp_path), "--log", log).returncode == 0
    assert len(read_log(log).verdicts) == 1


@pytest.mark.breakdown
@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced there")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("mv {log} old; cp other.jsonl {log}", "was replaced"),
        ("rm {log}", "was removed"),
        # The run's own verdicts would overwrite a shorter text.
        ('yes "$(cat other.jsonl)" | head -c 4000000 >> {log}', "was changed by something else"),
        (": > {log}", "was changed by something else"),
    ],
)
@pytest.mark.parametrize(("last", "code"), [("2", 6), ("3", 1)], ids=["passing", "failing"])
def test_log_changed_during_a_run_gives_no_report(
    tmp_path: Path, change: str, problem: str, last: str, code: int
) -> None:
    text = MANY.replace("LAST", last)
    write(tmp_path, text)
    other = write(tmp_path, text.replace("1000", "2"), "other.yaml")
    assert dmlconf_here(tmp_path, "run", other, "--log", "other.jsonl").returncode in (0, 1)
    with beginning(tmp_path, "run", "tile.yaml", "--log", "run.jsonl", "-q", "-j1") as process:
        while not text_of(tmp_path / "run.jsonl"):
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGSTOP)
        subprocess.run(["sh", "-c", change.format(log="run.jsonl")], cwd=tmp_path, check=True)
        process.send_signal(signal.SIGCONT)
        printed, errors = process.communicate()
    assert process.returncode == code, errors
    assert printed == ""
    assert f"run.jsonl {problem} while the run went on" in errors


DOCUMENTED_CASES = cases_directory() / "tile" / "documented.yaml"

WRITERS = {
    "run --report": ["run", "tile.yaml", "--report", "html:{}"],
    "run --log": ["run", "tile.yaml", "--log", "{}"],
    "run --dump": ["run", "tile.yaml", "-b", "faulty:zeros", "--dump", "{}"],
    "report": ["report", "log.jsonl", "--report", "json:{}"],
    "compare": ["compare", "log.jsonl", "log.jsonl", "--report", "html:{}"],
    "merge": ["merge", "log.jsonl", "-o", "{}"],
    "waive": ["waive", "log.jsonl", "-o", "{}"],
    "diagnose": ["diagnose", "log.jsonl", "-o", "{}"],
    "record": ["record", "tile.yaml", "-b", "faulty:zeros", "-o", "{}.dmlrec"],
    "certify": [
        "certify",
        str(DOCUMENTED_CASES),
        "-b",
        "numpy",
        "--profile",
        "5_0",
        "-o",
        "{}.dmlcert",
    ],
    "fuzz": [
        *("fuzz", "-o", "TILE", "-b", "faulty:zeros", "--seed", "1", "--cases", "9"),
        *("--save", "{}"),
    ],
    "keygen": ["keygen", "{}"],
    "new": ["new", "case", "TILE", "--output", "{}"],
    "history": ["history", "add", "log.jsonl", "--database", "{}"],
}
"""Commands that write to the path `{}`."""


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_the_folders_that_an_output_needs_are_created(tmp_path: Path, name: str) -> None:
    failing = ("run", write(tmp_path), "-b", "faulty:zeros", "--log", "log.jsonl")
    assert dmlconf_here(tmp_path, *failing).returncode == 1
    arguments = [each.format("new/folder/x") for each in WRITERS[name]]
    done = dmlconf_here(tmp_path, *arguments)
    assert done.returncode in (0, 1), done.stderr
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_an_output_that_cannot_be_written_leaves_no_folder(tmp_path: Path, name: str) -> None:
    failing = ("run", write(tmp_path), "-b", "faulty:zeros", "--log", "log.jsonl")
    assert dmlconf_here(tmp_path, *failing).returncode == 1
    arguments = [each.format(f"new/{'n' * 300}/x") for each in WRITERS[name]]
    done = dmlconf_here(tmp_path, *arguments)
    assert done.returncode not in (0, 1, 70), done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "new").exists()
