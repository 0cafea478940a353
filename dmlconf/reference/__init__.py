"""What is right: pure functions that compute outputs, and what rules permit beside them.

An operator's catalogue entry names its module as `family`. A function is named as its operator, in
lower case, and takes the operator's fields by their names in the header: input tensors as arrays,
output tensors as `TensorDesc`, attributes as plain values; an absent optional field is None, and
count fields are left out. It returns the output's array, or a tuple of them in struct order.
Functions named `..._error_scale`, `..._interval` and `..._candidates` beside it take the same
arguments and return what the operator's precision rule permits.
"""
