"""Graphs of operators, which `IDMLDevice1::CompileGraph` compiles, their rules and other forms.

What the outputs of a graph should be is in `reference.graph_evaluation`, what its nodes' errors
permit in `permitted.graphs`.
"""
