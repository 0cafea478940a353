"""Run migrations on the connection that `dmlconf.history.database` hands over."""

from __future__ import annotations

from alembic import context

__all__: list[str] = []

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
