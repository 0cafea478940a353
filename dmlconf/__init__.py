"""dmlconf: the conformance test runner for DirectML operators.

The command line is the public interface; `docs/architecture.md` maps the
packages below for those who write backends.
"""

__all__ = ["__version__"]

__version__ = "0.2.0"
