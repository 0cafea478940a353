"""Functions that compute the wrong outputs of runtimes with known faults.

Such a function, a formula, takes a case, and returns the outputs of a runtime with the fault; None
if the fault does not concern the case. `formulas` lists the formulas for DirectML,
`runtimes.formulas` those for other runtimes. `prediction` applies a formula to a case or to the
nodes of a graph.
"""
