"""Permitted errors of recurrent layers.

`lstm`, `gru` and `rnn` have the operators' functions, and list the values that kernels store in
FLOAT16. `layers` makes error scales from simulations of kernels (`kernels`). The values of a
simulation carry their errors (`quantity`, `spread`).
"""
