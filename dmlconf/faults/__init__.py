"""Wrong results of runtimes as formulas: one small pure function for each fault.

The function takes a case, and returns the outputs of a runtime with the fault; None if the fault
does not concern the case. `formulas` names the functions for DirectML, `runtimes.formulas` those
for other runtimes. `prediction` applies a function to a case or to the nodes of a graph.
"""
