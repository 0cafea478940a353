"""Permitted errors of normalizations.

`spans` and `gradient_spans` have what FLOAT16 stores permit, `parameters` the error scales that
several normalizations share.
"""
