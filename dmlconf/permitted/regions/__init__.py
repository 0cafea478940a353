"""Permitted results, besides the reference's outputs, of operators on regions of interest.

A sample is a point at which a kernel reads the input. `sampling` has the errors of samples'
coordinates. `candidates` and `outputs` are for outputs; `shares`, `parts` and `gradients` for
gradients.
"""
