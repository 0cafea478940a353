"""Write the pages that are made from the program: `python -m tests.docs`."""

from __future__ import annotations

from tests.docs.pages import write

write()
