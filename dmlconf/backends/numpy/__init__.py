"""The NumPy reference: one pure function per operator, one module per family.

A function is named as its operator, in lower case, and takes the operator's fields by their
names in the header: input tensors as arrays, output tensors as `TensorDesc`, attributes as plain
values; an absent optional field is None, and count fields are left out. It returns the output's
array, or a tuple of them in struct order.
"""
