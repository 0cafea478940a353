"""Compare outputs with expected values under precision rules.

`compare` is the loop over an output, `rules` computes what share of its limit each element uses,
`accumulation` has the limits of sums, and `ulp` the distances. `room` says how much a rule permits
for outputs, `allowed` for single elements. `allowance` has the types of what `dmlconf.permitted`
computes.
"""
