"""The peer: onnx's node tests on its reference evaluator, in an environment that has onnx.

`python peer_onnx.py PATTERN` runs the tests whose name matches, as onnx's documentation shows, and
prints how many ran and how long they took, without the startup time.
"""

from __future__ import annotations

import sys
import time
import unittest
import warnings

warnings.simplefilter("ignore")

import onnx.backend.test  # noqa: E402  # Warnings must be off before its cases are generated.
from onnx.backend.base import Backend, BackendRep  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402


class _Prepared(BackendRep):  # type: ignore[misc]  # onnx has no types here.
    def __init__(self, evaluator: ReferenceEvaluator) -> None:
        self.evaluator = evaluator

    def run(self, inputs, **_):  # type: ignore[no-untyped-def]  # onnx's own signature.
        names = self.evaluator.input_names
        return self.evaluator.run(None, dict(zip(names, inputs, strict=False)))


class _Reference(Backend):  # type: ignore[misc]  # onnx has no types here.
    @classmethod
    def prepare(cls, model, device="CPU", **_):  # type: ignore[no-untyped-def]  # As above.
        return _Prepared(ReferenceEvaluator(model))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


def main(pattern: str) -> None:
    """Run the node tests whose name matches the pattern."""
    tests = onnx.backend.test.BackendTest(_Reference, __name__)
    tests.include(pattern)
    suite = unittest.TestSuite()
    for case in tests.test_cases.values():
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    began = time.perf_counter()
    result = unittest.TextTestRunner(stream=sys.stderr).run(suite)
    seconds = time.perf_counter() - began
    ran = result.testsRun - len(result.skipped)
    failed = len(result.failures) + len(result.errors)
    print(f"{ran} ran {failed} failed {seconds:.6f} seconds")
    if not ran or failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1])
