"""Permitted results of resampling and its gradient besides the reference's outputs.

`resample` and `gradients` have the operators' functions. `coordinates` has the errors of
coordinates; `estimates` and `candidates` use them for RESAMPLE, `gradient_candidates` for its
gradient. `spreading` says which elements special gradients may reach.
"""
