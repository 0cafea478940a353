"""Graphs of operators: what `IDMLDevice1::CompileGraph` takes, and how it must be wired."""
