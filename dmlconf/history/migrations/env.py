"""Run migrations on the connection that `dmlconf.history.database` hands over.

Alembic sets up its context and then runs this file. If the file is only imported, it does nothing.
"""

from __future__ import annotations

from alembic import context

__all__: list[str] = []

if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"])
    context.run_migrations()
