"""Fixtures and settings of all tests."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import settings

from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cli.common.cache import VARIABLE, user_store
from dmlconf.resources import cases_directory
from dmlconf.workers.tuning import collect_garbage_seldom
from tests.forked import forked_workers

# Python is to store compiled modules; otherwise, each process of a test compiles dmlconf again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
collect_garbage_seldom()

# A shell starts jobs in the background with SIGINT ignored, and tests interrupt this process.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# By default, Hypothesis tries the same 60 examples each time; `explore` tries 1,500 new ones.
settings.register_profile(
    "dmlconf", deadline=None, max_examples=60, database=None, derandomize=True
)
settings.register_profile("explore", deadline=None, max_examples=1500, database=None)
settings.load_profile("dmlconf")

NEEDS_OF_MARKERS: Final = {
    "benchmark": "onnx and onnxruntime (pip install '.[benchmarks]')",
    "fuzz": "a minute or two (docs/fuzzing.md)",
    "hostile": "minutes (docs/reliability.md)",
    "lab": "the Wine lab (docs/wine-lab.md)",
    "layers": "many minutes (docs/precision.md)",
    "runtimes": "onnx and onnxruntime (pip install '.[onnxruntime]')",
    "slow": "a third of a second or more each",
    "webnn": "a Chromium with WebNN (python3 lab/chromium.py)",
    "native": "Microsoft's DirectX headers and a C++ compiler",
    "postgres": "PostgreSQL (postgresql of Debian)",
}
"""What the tests of some markers need; they run only with `-m MARKER`."""


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Store checked case files in a folder that the processes of a session share."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    (shared / "cache").mkdir(mode=0o700, exist_ok=True)
    os.environ[VARIABLE] = str(shared / "cache")


@pytest.fixture(scope="session", autouse=True)
def _forked_workers() -> Iterator[None]:
    """Start worker processes as copies, which is quicker."""
    with forked_workers():
        yield


@pytest.fixture(scope="session")
def bundled_suite() -> Suite:
    return load_suite([cases_directory()], store=user_store())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share",
        type=share,
        metavar="K/N",
        help="run only every Nth of the chosen tests, beginning with the Kth",
    )


def share(text: str) -> tuple[int, int]:
    """Return K and N of `K/N`, where 1 <= K <= N."""
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with 1 <= K <= N, such as 2/3")
    return int(k), int(n)


@pytest.hookimpl(trylast=True)  # Runs after `-m` has selected tests.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.share is None:
        return
    k, n = config.option.share
    if n > len(items):
        message = f"--share {k}/{n}: only {len(items)} tests are chosen, so some parts are empty"
        raise pytest.UsageError(message)
    chosen = items[k - 1 :: n]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    explored = config.getoption("--hypothesis-profile", None) == "explore"
    if explored and config.getoption("--hypothesis-seed", None) is None:
        seed = os.environ.setdefault("DMLCONF_EXPLORE_SEED", str(secrets.randbelow(1 << 32)))
        config.option.hypothesis_seed = seed


def pytest_report_header(config: pytest.Config) -> str | None:
    if config.getoption("--hypothesis-profile", None) != "explore":
        return None
    return f"explore: repeat with --hypothesis-seed={config.getoption('--hypothesis-seed')}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests of each marker were left out, and how to run them."""
    left_out = terminalreporter.stats.get("deselected", [])
    for marker, need in NEEDS_OF_MARKERS.items():
        count = sum(item.get_closest_marker(marker) is not None for item in left_out)
        if count:
            tests = "test needs" if count == 1 else "tests need"
            terminalreporter.write_line(
                f"left out: {count} {tests} {need}; to run: pytest -m {marker}"
            )
