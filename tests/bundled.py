"""Parts of the suite in `cases/`, whose files the first test process that needs them checks."""

from __future__ import annotations

from functools import cache

from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cli.common.cache import user_store
from dmlconf.resources import cases_directory

__all__ = ["bundled"]


@cache
def bundled(*names: str) -> Suite:
    """Load folders and files of the suite.

    Checking a large file takes a hundred times as long as reading what is known of it.

    Args:
        names: their paths in `cases/`, such as `gather` or `tile/matrix.yaml`; none is all.
    """
    return load_suite([cases_directory() / name for name in names or ("",)], store=user_store())
