"""The backend `webnn` runs cases in Chromium (`lab/chromium.py`), also after a crash or a hang.

The tested code is in `dmlconf/backends/webnn/backend.py`, `dmlconf/backends/webnn/devtools.py`,
`dmlconf/backends/webnn/page.js` and `dmlconf/translation/translate.py`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dmlconf.backends.protocol import BackendError, Breakdown, BreakdownKind, Outputs
from dmlconf.backends.webnn import backend as webnn
from dmlconf.backends.webnn.backend import VARIABLE, create
from dmlconf.backends.webnn.devtools import Browser
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.cli.process import dmlconf_here

pytestmark = pytest.mark.webnn

CASES = Path(__file__).resolve().parents[3] / "cases"


def three_tiles() -> list[Case]:
    plan = load_suite([CASES / "tile" / "matrix.yaml"]).plan()
    chosen = [valid_case(each) for each in plan if "FLOAT32" in each.identifier]
    return [case.with_inputs() for case in chosen[:3]]


def test_cases_of_four_operators_pass_or_are_not_expressible(tmp_path: Path) -> None:
    assert os.environ.get(VARIABLE), f"export {VARIABLE}=$(python3 lab/chromium.py)"
    names = ("GEMM", "GATHER", "ELEMENT_WISE_ADD", "TILE")
    options = [option for name in names for option in ("-o", name)]
    done = dmlconf_here(
        tmp_path,
        *("run", *options, "--tag", "documented", "--tag", "questions"),
        *("-b", "webnn", "--quiet", "--log", "run.jsonl"),
    )
    verdicts = read_log(tmp_path / "run.jsonl").verdicts
    assert done.returncode == 0, done.stdout + done.stderr
    assert {v.status for v in verdicts} == {Status.PASSED, Status.UNSUPPORTED}
    passed = Counter(v.operator for v in verdicts if v.status is Status.PASSED)
    assert passed.keys() == set(names)
    unsupported = [v.reason for v in verdicts if v.status is Status.UNSUPPORTED]
    assert {r and r.kind for r in unsupported} == {ReasonKind.NOT_EXPRESSIBLE}


def test_programs_sent_in_parts_give_the_same_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = three_tiles()
    backend = create("")
    evaluate = Browser.evaluate
    parts_sent: list[str] = []

    def evaluate_and_note_part(browser: Browser, script: str, timeout: float | None = None) -> Any:
        if script.startswith("keep("):
            parts_sent.append(script)
        return evaluate(browser, script, timeout)

    monkeypatch.setattr(Browser, "evaluate", evaluate_and_note_part)
    try:
        whole = list(backend.run(cases))
        assert not parts_sent
        monkeypatch.setattr(webnn, "LONGEST_SCRIPT", 100)  # Longer programs are sent in parts.
        monkeypatch.setattr(webnn, "_PART", 8)  # A part has 8 characters.
        parts = list(backend.run(cases)) + list(backend.run(cases))
        assert parts_sent
    finally:
        backend.close()
    for one, other in zip(whole * 2, parts, strict=True):
        assert isinstance(one, Outputs)
        assert isinstance(other, Outputs)
        np.testing.assert_array_equal(one.arrays["OutputTensor"], other.arrays["OutputTensor"])


def processes_of_browser(kind: str) -> list[psutil.Process]:
    """Return the browser's processes that have an option; pages have `--type=renderer`."""
    processes = []
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # It has ended meanwhile.
            if "chromium" in each.name() and kind in " ".join(each.cmdline()):
                processes.append(each)
    assert processes
    return processes


def kill_processes(kind: str) -> None:
    processes = processes_of_browser(kind)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, 10)


def suspend_pages() -> None:
    """Suspend the browser's pages, which then give no answer."""
    for process in processes_of_browser("--type=renderer"):
        with suppress(psutil.NoSuchProcess):
            process.suspend()


def test_integers_beyond_javascripts_53_bits_reach_the_page() -> None:
    plan = load_suite([CASES / "padding1" / "boundary.yaml"]).plan()
    cases = [valid_case(each).with_inputs() for each in plan if "above-53" in each.identifier]
    backend = create("")
    try:
        outcomes = list(backend.run(cases))
    finally:
        backend.close()
    assert cases
    for case, outcome in zip(cases, outcomes, strict=True):
        assert isinstance(outcome, Outputs)
        assert outcome.arrays["OutputTensor"].tolist() == [case.desc["PaddingValue"], 1, 2]


@pytest.mark.parametrize("kind", ["--type=renderer", "--headless"])
def test_crash_breaks_a_single_case_but_no_batch(
    kind: str,
) -> None:
    cases = three_tiles()
    backend = create("")
    try:
        assert all(isinstance(each, Outputs) for each in backend.run(cases))
        kill_processes(kind)
        # The cases of a batch run again, one at a time.
        assert all(isinstance(each, Outputs) for each in backend.run(cases))
        kill_processes(kind)
        [outcome] = backend.run(cases[:1])
        assert isinstance(outcome, Breakdown)
        assert outcome.kind is BreakdownKind.CRASH
        assert all(isinstance(each, Outputs) for each in backend.run(cases))
    finally:
        backend.close()


def test_hang_breaks_a_single_case_but_no_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = three_tiles()
    backend = create("")
    evaluate, limits = Browser.evaluate, []

    def evaluate_and_note_timeout(
        browser: Browser, script: str, timeout: float | None = None
    ) -> Any:
        limits.append(timeout)
        try:
            return evaluate(browser, script, timeout)
        except TimeoutError:
            backend.limit_waits(60)  # Cases that do not hang get enough time.
            raise

    try:
        backend.limit_waits(60)
        assert all(isinstance(each, Outputs) for each in backend.run(cases))
        suspend_pages()
        backend.limit_waits(3)
        monkeypatch.setattr(Browser, "evaluate", evaluate_and_note_timeout)
        [outcome] = backend.run(cases[:1])
        assert isinstance(outcome, Breakdown)
        assert (outcome.kind, outcome.message) == (
            BreakdownKind.HANG,
            "the browser gave no answer within 3 s",
        )
        # After a wait of 3 s, the cases of the batch run again, one at a time.
        suspend_pages()
        backend.limit_waits(3)
        assert all(isinstance(each, Outputs) for each in backend.run(cases))
        assert set(limits) == {None, 3, 60}
    finally:
        backend.close()


def test_a_browser_that_ends_at_once_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(BackendError, match="the browser ended with 3"):
        create(f"path={program}")


def test_failed_start_of_the_browser_leaves_no_open_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*arguments: Any, **more: Any) -> None:
        raise OSError("no more processes")

    before = psutil.Process().num_fds()
    monkeypatch.setattr("dmlconf.backends.webnn.devtools.subprocess.Popen", refused)
    with pytest.raises(BackendError, match="does not start: no more processes"):
        create("path=chromium")
    assert psutil.Process().num_fds() == before


FAKE_BROWSER = """#!{python}
import json, os, pathlib
broken, rest = pathlib.Path({broken!r}), b""
if broken.exists():
    exit(3)
while True:
    while b"\\0" not in rest:
        rest += os.read(3, 1 << 16) or exit()
    text, _, rest = rest.partition(b"\\0")
    message = json.loads(text)
    runs = "runAll" in message["params"].get("expression", "")
    if runs and broken.exists():
        exit()
    value = [{{"outputs": {{}}, "seconds": 0}}] if runs else "{{}}"
    result = {{"product": "Fake/1", "targetId": "t", "sessionId": "s"}}
    result["result"] = {{"value": value}}
    answers = [{{"id": message["id"], "result": result}}, {{"method": "Page.loadEventFired"}}]
    os.write(4, b"".join(json.dumps(each).encode() + b"\\0" for each in answers))
"""
"""A browser whose page gives one result, without outputs, for any number of cases.

While the file `broken` exists, it ends at its start or at a case.
"""


def fake_browser(folder: Path) -> tuple[Path, Path]:
    program, broken = folder / "chromium", folder / "broken"
    program.write_text(FAKE_BROWSER.format(python=sys.executable, broken=str(broken)))
    program.chmod(0o755)
    return program, broken


def test_browser_is_started_again_after_a_failed_start(
    tmp_path: Path,
) -> None:
    program, broken = fake_browser(tmp_path)
    case = three_tiles()[0]
    backend = create(f"path={program}")
    assert [*backend.run([case])] == [Outputs({})]
    broken.touch()
    with pytest.raises(BackendError, match="does not start: the browser ended with 3"):
        list(backend.run([case]))
    broken.unlink()
    assert [*backend.run([case])] == [Outputs({})]
    backend.close()
    backend.close()  # A second call does nothing.


def test_browser_with_too_few_results_is_started_again(
    tmp_path: Path,
) -> None:
    backend = create(f"path={fake_browser(tmp_path)[0]}")
    first = backend._browser
    assert [*backend.run(three_tiles()[:2])] == [Outputs({})] * 2
    assert first.closed
    backend.close()
