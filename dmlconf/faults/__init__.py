"""Wrong results of runtimes as formulas: one small pure function for each fault.

Here a fault is a wrong formula. Its function takes a case with its inputs, and returns the outputs
of a runtime with the fault; None if the fault does not concern the case. `formulas` names the
functions for DirectML, `runtimes.formulas` those for other runtimes; `prediction` applies
them to a case or to the nodes of a graph.
"""
