"""Load parts of the suite in `cases/` for tests; each file is checked only once."""

from __future__ import annotations

from functools import cache

from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cli.common.cache import user_store
from dmlconf.resources import cases_directory

__all__ = ["bundled"]


@cache
def bundled(*names: str) -> Suite:
    """Load folders and files of the suite.

    The content of a checked file is stored for all test processes, since checking a large file
    takes a hundred times as long as reading the stored content.

    Args:
        names: paths in `cases/`, such as `gather` or `tile/matrix.yaml`; if there are none, the
            whole suite.
    """
    return load_suite([cases_directory() / name for name in names or ("",)], store=user_store())
