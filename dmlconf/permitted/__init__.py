"""Permitted results of implementations besides the reference's outputs, and permitted errors.

`dmlconf.reference` says what is right, as if nothing were ever rounded; this package says what
FLOAT32 and FLOAT16 arithmetic may make of it. It imports the reference and `dmlconf.precision`, and
neither of these imports it. Its folders are those of the reference: what is permitted of the
operators in `reference/products/attention.py` is in `permitted/products/attention.py`.

An operator's precision rule, in its catalogue entry, decides which function it has here. Each takes
the operator's fields as its reference function does, and is named after it:

- `..._error_scale`: for the rules `accumulate`, what the rounding errors of sums are a share of. Of
  1 + 2 - 3 the result is 0 and the error scale 6.
- `..._interval`: the least and the greatest right value of each element.
- `..._candidates`: several such intervals; each element lies in one of them.

`functions.permitted_function` finds it, `allowance` puts together what a case needs, `graphs` says
what a graph may compute whose nodes each may be off, and docs/bounds.md derives the quantities.
"""
