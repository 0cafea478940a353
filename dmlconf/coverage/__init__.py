"""Measure what a suite covers: documentation, questions, pairs of parameters, models, networks."""
