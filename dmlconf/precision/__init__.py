"""Compare outputs with expected values under precision rules.

`compare` is the loop, `rules` has the limit of each kind of rule, `accumulation` the limits of
sums, and `room` says how much a rule permits. What an operator's rule permits besides the expected
values comes as an `Allowance` from `dmlconf.permitted`.
"""
