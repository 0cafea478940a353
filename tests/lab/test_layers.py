"""Layers between dmlconf and DirectML in the lab, each wrong in one circumstance, are found out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from dmlconf.runner.log import RunLog, read_log
from dmlconf.runner.verdict import Status
from tests.lab.test_bad_situations import lab

pytestmark = pytest.mark.lab

LAYER: Final = Path(__file__).parent / "layers" / "layer.py"
ADD: Final = ("-o", "ELEMENT_WISE_ADD", "-k", "boundary and int")


def run(directory: Path, layer: str, *arguments: str, exit_code: int = 1) -> RunLog:
    """Run cases with the layer between, and return the log."""
    shutil.copy(LAYER, directory)
    done = lab(
        "python", "--", "layer.py", layer, "run", *arguments, "--log", "run.jsonl", "-q",
        cwd=directory,
    )  # fmt: skip
    assert done.returncode == exit_code, done.stdout + done.stderr
    return read_log(directory / "run.jsonl")


@pytest.mark.parametrize(
    ("layer", "option", "wrong", "right"),
    [("wrong_metacommand", "metacommands", "on", "off"), ("wrong_half", "half", "on", "off"),
     ("wrong_graph", "compile", "graph", "operator")],
)  # fmt: skip
def test_the_wrong_variant_is_named_and_no_other(
    layer: str, option: str, wrong: str, right: str, tmp_path: Path
) -> None:
    log = run(tmp_path, layer, *ADD, "-b", f"directml:{option}=both")
    assert log.header.environment["details"][option] == "both"
    assert len(log.verdicts) == 8
    for verdict in log.verdicts:
        assert verdict.variants[f"{option}={wrong}"].status is Status.FAILED
        assert verdict.variants[f"{option}={right}"].status is Status.PASSED
        assert verdict.reason is not None
        assert verdict.reason.message.startswith(f"only with {option}={wrong}: ")


def test_variants_of_real_directml_agree(tmp_path: Path) -> None:
    done = lab(
        "run", "--", "run", *ADD, "-b", "directml:metacommands=both,compile=both",
        "--log", "run.jsonl", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = read_log(tmp_path / "run.jsonl").verdicts
    assert all(len(verdict.variants) == 4 for verdict in verdicts)
    assert not any(
        result.differing_bits for verdict in verdicts for result in verdict.variants.values()
    )
