"""Permitted errors of recurrent layers.

`lstm`, `gru` and `rnn` say what kernels store in FLOAT16. `layers` makes error scales from the
simulations of such kernels (`kernels`), whose values carry their errors (`quantity`, `spread`).
"""
