"""Run migrations on the connection that `dmlconf.history.database` hands over.

The file does nothing unless Alembic runs it.
"""

from __future__ import annotations

from alembic import context

__all__: list[str] = []

if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"])
    context.run_migrations()
