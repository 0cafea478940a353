"""Graphs of operators, which `IDMLDevice1::CompileGraph` compiles, and rules for their edges."""
