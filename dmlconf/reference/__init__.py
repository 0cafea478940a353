"""The reference: a pure function for each operator, which reads like the formula on its page.

An operator's catalogue entry names its module as `family`. A function is named as its operator, in
lower case, and takes the operator's fields by their names in the header: input tensors as arrays,
output tensors as `TensorDesc`, attributes as plain values; an absent optional field is None, and
count fields are left out. It returns the output's array, or a tuple of them in struct order, as if
no step before the last were ever rounded; what rounding may change is in `dmlconf.permitted`. Where
functions have many fields in common, a dataclass names them once, and the decorator `of_fields`
lets callers pass them one by one.

Docstrings begin with shapes and data types: `InputTensor {N, C, D0, ...}, [BiasTensor {1, C, 1,
...}] -> OutputTensor {N, C, E0, ...}; FLOAT32, FLOAT16`. Equal letters are equal sizes;
`D0, D1, ...` stands for any number of dimensions, `1, ...` for any number of sizes 1, and
`D0, ..., A, ...` has A elements along the axis. Optional tensors are in brackets. The data types
are those of the first output at any feature level, as the catalogue lists them; a tensor with other
types follows by name: `IndicesTensor: INT64, INT32`. `INT64 to INT8` stands for INT64, INT32, INT16
and INT8.
"""
