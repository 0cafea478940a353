"""Load parts of the suite in `cases/`, so that one test process checks each file for all."""

from __future__ import annotations

from functools import cache

from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cli.common.cache import user_store
from dmlconf.resources import cases_directory

__all__ = ["bundled"]


@cache
def bundled(*names: str) -> Suite:
    """Load folders and files of the suite.

    What a checked file holds is kept for all test processes, since to check a large file takes a
    hundred times as long as to read what was kept.

    Args:
        names: paths in `cases/`, such as `gather` or `tile/matrix.yaml`; without any, everything.
    """
    return load_suite([cases_directory() / name for name in names or ("",)], store=user_store())
