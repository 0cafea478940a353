"""Wrong results of runtimes as formulas, one small pure function for each fault.

In this package, a fault is a wrong formula. Its function takes a case with its inputs and returns
the outputs that a runtime with the fault gives, or None if the fault does not concern the case.
`formulas` has the functions for DirectML by the names that `schemas/known-faults.yaml` uses,
`runtimes.formulas` those for ONNX Runtime and WebNN, and `prediction` applies them to a case or to
the nodes of a graph.
"""
