"""dmlconf: the conformance test runner for DirectML operators.

The command line is the public interface. For those who write backends,
`docs/architecture.md` says what each package in this folder holds.
"""

__all__ = ["__version__"]

__version__ = "0.2.0"
