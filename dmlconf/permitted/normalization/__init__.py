"""Permitted errors of normalisations.

`spans` and `gradient_spans` have what FLOAT16 stores permit. Several normalisations share
`parameters`, and functions of `mean_variance`.
"""
