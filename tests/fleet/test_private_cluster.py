"""A local cluster answers no process of another user, and cleans up after an interrupt.

The tested code is in `dmlconf/fleet/cluster.py` and, for interrupts, in `dmlconf/fleet/dispatch.py`
and `dmlconf/cli/runs/run_target.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from dmlconf.run_log.log import read_log
from tests.cli.process import beginning, text_of, write
from tests.fleet.machines import Machines
from tests.fleet.suites import MATRIX

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.skipif(sys.platform != "linux", reason="ports are looked up in /proc"),
]

SLOW = ("-b", "faulty:slow,seconds=1", "-j", "1")
"""Options with which each case takes a second."""

BECOME_NOBODY = """
import os  # 65534 is the number of the user and of the group `nobody`.
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""

CONNECT_TO_PORTS = """
# Speaks Dask's protocol to each port, with a key of its own and without a key.
import asyncio, sys
import cryptography.x509, distributed.comm.tcp, distributed.protocol, tornado.platform.asyncio
from distributed.comm import connect
from distributed.security import Security
other = Security.temporary()
seconds, ports = float(sys.argv[1]), sys.argv[2:]
BECOME_NOBODY
async def attempt(address, security):
    try:
        comm = await connect(address, timeout=seconds, **security.get_connection_args("client"))
        await comm.write({"op": "identity", "reply": True})
        print("answered", await asyncio.wait_for(comm.read(), seconds), flush=True)
        os._exit(0)
    except Exception:
        pass

async def attempts():
    each = [attempt(f"tls://127.0.0.1:{port}", other) for port in ports]
    each += [attempt(f"tcp://127.0.0.1:{port}", Security()) for port in ports]
    await asyncio.wait([asyncio.ensure_future(one) for one in each], timeout=2 * seconds)

asyncio.run(attempts())
print("tried", flush=True)
os._exit(0)
"""

REQUEST_PAGES = """
# Asks each port for pages of Dask's over HTTP.
import encodings.idna, http.client, sys, urllib.error, urllib.request
BECOME_NOBODY
PAGES = ("/", "/info/main/workers.html", "/json/identity.json", "/metrics", "/health",
         "/proxy/22/127.0.0.1/", "/api/v1/retire_workers", "/statics/css/base.css")
browser = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for port in sys.argv[1:]:
    for page in PAGES:
        try:
            browser.open(f"http://127.0.0.1:{port}{page}", timeout=10)
            print("answered", page)
        except urllib.error.HTTPError:
            pass
        except (OSError, http.client.HTTPException):
            break  # This port does not speak HTTP.
print("tried")
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a run on a local cluster, and wait for its first verdict."""
    write(tmp_path, MATRIX.replace("[0, 1, 2]", '"=range(600)"'))
    arguments = ("--scheduler", "local:2", "--log", "run.jsonl", *SLOW)
    (tmp_path / "temporary").mkdir()
    process = beginning(
        tmp_path, "run", "tile.yaml", *arguments, TMPDIR=str(tmp_path / "temporary")
    )
    while text_of(tmp_path / "run.jsonl").count("\n") < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    yield process
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def ports(process: subprocess.Popen[str]) -> set[int]:
    """Return the ports on which the run's processes listen; all must be of 127.0.0.1."""
    own = psutil.Process(process.pid)
    found = [
        connection.laddr
        for each in (own, *own.children(recursive=True))
        for connection in each.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert {address.ip for address in found} <= {"127.0.0.1"}
    return {address.port for address in found}


def output_as_nobody(script: str, *arguments: str) -> str:
    """Return what a script prints as the user `nobody`, or as this user if it is not root.

    The script changes its user after its imports, since Python may lie where only root can read.
    """
    done = subprocess.run(
        [sys.executable, "-c", script.replace("BECOME_NOBODY", BECOME_NOBODY), *arguments],
        cwd="/",
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_another_user_gets_no_answer_from_a_cluster(
    cluster: subprocess.Popen[str],
) -> None:
    listening = [str(port) for port in ports(cluster)]
    assert listening
    assert output_as_nobody(CONNECT_TO_PORTS, "2", *listening) == "tried\n"
    assert output_as_nobody(REQUEST_PAGES, *listening) == "tried\n"
    assert cluster.poll() is None


def test_cluster_without_keys_answers_the_same_script(
    tmp_path: Path,
) -> None:
    with Machines(tmp_path) as machines:
        port = machines.address.rpartition(":")[2]
        assert output_as_nobody(CONNECT_TO_PORTS, "30", port).startswith("answered ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_leaves_no_scratch_folder_and_no_traceback(
    cluster: subprocess.Popen[str], tmp_path: Path, number: int
) -> None:
    os.killpg(cluster.pid, number)
    _, errors = cluster.communicate(timeout=60)
    assert cluster.returncode == 6
    assert "Traceback" not in errors
    assert not list(tmp_path.rglob("dask-scratch-space"))
    assert not list((tmp_path / "temporary").iterdir())
    assert read_log(tmp_path / "run.jsonl").footer is not None


def test_interrupt_after_a_complete_log_keeps_the_exit_code(tmp_path: Path) -> None:
    write(tmp_path, MATRIX)
    process = beginning(
        tmp_path, "run", "tile.yaml", "--scheduler", "local:1", "--log", "run.jsonl", "-q"
    )
    while '"record":"footer"' not in text_of(tmp_path / "run.jsonl"):
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    while process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    _, errors = process.communicate(timeout=60)
    assert read_log(tmp_path / "run.jsonl").complete
    assert process.returncode == 1, errors  # One case fails.
    assert "Traceback" not in errors
