"""Permitted errors of normalisations.

`spans` and `gradient_spans` have what FLOAT16 stores permit. What several normalisations share is
in `parameters`, and in `mean_variance` if it concerns stores of means or variances.
"""
