"""Which pairs of values of an operator's parameters a suite covers, such as FLOAT16 and padded."""
