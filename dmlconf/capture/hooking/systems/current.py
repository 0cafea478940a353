"""The module of this process's system: `windows`, or `linux` for every other one."""

from __future__ import annotations

import sys

__all__ = ["system"]

if sys.platform == "win32":
    from dmlconf.capture.hooking.systems import windows as system
else:
    from dmlconf.capture.hooking.systems import linux as system
