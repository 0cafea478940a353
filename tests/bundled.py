"""Load parts of the suite in `cases/` for tests; each file is checked only once."""

from __future__ import annotations

from functools import cache

from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cli.common.cache import user_store
from dmlconf.resources import cases_directory

__all__ = ["bundled"]


@cache
def bundled(*names: str) -> Suite:
    """Load paths in `cases/`, such as `gather` or `tile/matrix.yaml`; by default the whole suite.

    The content of a checked file is stored for all test processes.
    """
    return load_suite([cases_directory() / name for name in names or ("",)], store=user_store())
