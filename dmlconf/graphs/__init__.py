"""Graphs of operators, which `IDMLDevice1::CompileGraph` compiles, their rules and other forms.

`reference.graph_evaluation` computes a graph's outputs, `permitted.graphs` what errors of its nodes
permit.
"""
