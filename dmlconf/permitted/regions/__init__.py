"""Permitted results, besides the reference's outputs, of operators on regions of interest.

A sample is a point at which a kernel reads the input. `sampling` has the errors of the samples'
coordinates; `candidates` and `outputs` use them for outputs, `shares`, `parts` and `gradients` for
gradients.
"""
