from __future__ import annotations

from hypothesis import settings

settings.register_profile("dmlconf", deadline=None, max_examples=60, database=None)
settings.load_profile("dmlconf")
