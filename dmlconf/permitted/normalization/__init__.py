"""Permitted errors of normalisations.

`spans` and `gradient_spans` have what FLOAT16 stores permit, `parameters` the error scales that
several normalisations share.
"""
