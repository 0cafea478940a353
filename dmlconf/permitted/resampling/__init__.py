"""Permitted results of resampling and its gradient besides the reference's outputs.

`resample` and `gradients` have the operators' functions. `coordinates` has the errors of
coordinates. `estimates` and `candidates` are for RESAMPLE; `gradient_candidates` and `spreading`
for its gradient.
"""
