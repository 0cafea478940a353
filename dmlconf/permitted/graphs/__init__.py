"""Permitted outputs of graphs, whose nodes may each be off within their own limits."""
