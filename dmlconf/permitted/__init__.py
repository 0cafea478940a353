"""Compute what implementations may return besides the reference's outputs, since they round.

`dmlconf.reference` computes as if nothing were ever rounded; this package computes what FLOAT32 and
FLOAT16 arithmetic may give instead. Modules of operators have the same path in both: the functions
for `reference/products/attention.py` are in `permitted/products/attention.py`.

An operator has a function here for each of its precision rules that needs one; rules such as
`exact` and `ulp` do not.
The function takes the operator's fields, as the reference function does. Its name is the
operator's, followed by what it returns:

- `..._error_scale`, for the rule `accumulate`: the number that the rounding errors of sums are
  shares of. The sum 1 + 2 - 3 is 0, and its error scale is 6.
- `..._interval`: the least and the greatest right value of each element.
- `..._candidates`: one or more such intervals; each right element lies in at least one of them.
- `..._consequences`: what outputs must be, given others that a device returned. It takes returned
  outputs as arrays, and None for those that are not known.

`functions` finds such a function, and `allowance` collects what the rules of a case need. Further
right outputs come from `subnormals`, with zeros for subnormal operands, and from `float32_range`,
with intermediates that overflow or underflow. `numbers` has the errors of arithmetic for several
families; `graphs` has what a graph may return. docs/bounds.md derives the quantities.
"""
