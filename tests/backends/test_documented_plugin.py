"""The example of a plugin in the documentation passes, and fails if a mistake is added.

The tested code is in the page `docs/backends.md`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dmlconf.resources import cases_directory
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import Status
from tests.backends.installing import install_plugin
from tests.cases.suites import replace_once
from tests.cli.process import dmlconf

ADDITIONS = cases_directory() / "element_wise_add"
"""The cases of the operator that the plugin computes."""

KEYWORDS = "FLOAT32 and (layouts or documented)"

PAGE = Path(__file__).resolve().parents[2] / "docs" / "backends.md"


@pytest.mark.slow
def test_documented_plugin_passes_and_fails_after_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert code.startswith('"""my_package.py: ')
    folder = tmp_path / "plugin"
    install_plugin(folder, "mine", module="my_package", code=code)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    done = dmlconf(tmp_path, "run", ADDITIONS, "-k", KEYWORDS, "-b", "mine", "--log", "x.jsonl")
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = read_log(tmp_path / "x.jsonl").verdicts
    assert {verdict.status for verdict in verdicts} == {Status.PASSED}
    assert any("layouts" in verdict.case for verdict in verdicts)
    wrong = replace_once(code, "np.add(a, b", "np.subtract(a, b")
    (folder / "my_package.py").write_text(wrong, encoding="utf-8")
    again = dmlconf(tmp_path, "run", ADDITIONS, "-k", KEYWORDS, "-b", "mine", "--log", "y.jsonl")
    assert again.returncode == 1, again.stdout + again.stderr
    assert Status.FAILED in {verdict.status for verdict in read_log(tmp_path / "y.jsonl").verdicts}
