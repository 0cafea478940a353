"""Graphs of operators: the input of `IDMLDevice1::CompileGraph`, and how it must be wired."""
