"""Permitted errors of recurrent layers.

`lstm`, `gru` and `rnn` list what kernels store in FLOAT16, and have the operators' functions.
`layers` makes error scales from simulations of these kernels (`kernels`), whose values carry their
errors (`quantity`, `spread`).
"""
