"""Compute what implementations may return besides the reference's outputs, since they round.

`dmlconf.reference` says what is right, as if nothing were ever rounded; this package says what
FLOAT32 and FLOAT16 arithmetic may make of it. Its folders but `graphs` are those of the reference:
what is permitted of the operators in `reference/products/attention.py` is in
`permitted/products/attention.py`.

The kinds of an operator's precision rules, in its catalogue entry, decide which functions the
operator has here; a rule such as `exact` needs none. Each function takes the operator's fields, as
the reference function does, and is named after the operator and what it returns:

- `..._error_scale`, for the rule `accumulate`: the number that the rounding errors of sums are
  shares of. The sum 1 + 2 - 3 is 0, and its error scale is 6.
- `..._interval`: the least and the greatest right value of each element.
- `..._candidates`: one or more such intervals; each right element lies in at least one of them.

`functions.permitted_function` finds such a function, and `allowance` puts together what the
rules of a case need. `subnormals` makes the case whose subnormal operands are zeros, and
`float32_range` computes with the range of FLOAT32: both give other right outputs. `numbers` has the
errors of arithmetic that several families need. `graphs` says what a graph may return, since each
of its nodes may be off. docs/bounds.md derives the quantities; `dmlconf.precision` compares with
them.
"""
