"""Run migrations on the connection that `dmlconf.history.database` hands over.

Alembic runs this file after it has set up its context. Imported without it, the file does nothing.
"""

from __future__ import annotations

from alembic import context

__all__: list[str] = []

if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"])
    context.run_migrations()
