"""What arithmetic and comparisons may return, for several families of operators.

- `error_scale` and `terms` have the errors of sums.
- `passes` computes sums and averages along several axes, one group of adjacent axes after another.
- `rounding` has the intervals of results, `span` the intervals of intermediates.
- `accuracy` has the errors of exp2, log2, erf and the constant log2(e).
- `half` stores numbers in FLOAT16.
- `attributes` converts attributes to integers, as each processor may do it.
- `comparison_in_parts` says which rows kernels compare in parts to find a maximum or minimum.
"""
