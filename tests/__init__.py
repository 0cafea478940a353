"""Tests of dmlconf; they compute in one thread, as its commands do.

This is imported before NumPy. In several threads, the small tensors of tests take twice the
processor time.
"""

import os

from dmlconf.workers.tuning import compute_in_one_thread

os.environ.pop("OPENBLAS_NUM_THREADS", None)  # Of the process that started this one.
compute_in_one_thread()
