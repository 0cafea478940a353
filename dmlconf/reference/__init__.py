"""The reference: pure functions that compute what is right for each operator.

The `family` of an operator's catalogue entry names the module of its function. A special case of
another operator, such as ELEMENT_WISE_ADD of ELEMENT_WISE_ADD1, has no function: `evaluation` calls
that of the other. A function has its operator's name in lower case. It takes the fields of its desc
except counts: input tensors as arrays, output tensors as `TensorDesc`, arrays of tensors as
sequences of these, attributes as plain values, absent fields as None. It returns the output, or a
tuple of the outputs that the desc has, in struct order. As a rule, only the last step rounds;
`dmlconf.permitted` says what rounding may change.

Its docstring begins with shapes and data types: `InputTensor {N, C, D0, ...}, [BiasTensor {1, C,
1, ...}] -> OutputTensor {N, C, E0, ...}; FLOAT32, FLOAT16`. Equal letters are equal sizes;
`D0, D1, ...` stands for any number of dimensions, `1, ...` for any number of sizes 1, and
`D0, ..., A, ...` has A elements along the axis. Optional tensors are in brackets. The data types
are those of the first output at any feature level, as the catalogue lists them; a tensor with other
types follows by name: `IndicesTensor: INT64, INT32`. `INT64 to INT8` stands for INT64, INT32, INT16
and INT8.
"""
