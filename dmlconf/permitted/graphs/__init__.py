"""Permitted outputs of graphs, whose nodes may each be off within their own limits.

`allowance` puts the outputs together, and its first lines name the module of each effect.
"""
