"""Starts the dmlconf that this file holds. Any Python can read this module, even 2.7."""

import sys

if sys.version_info < (3, 7):
    sys.stderr.write("Error: dmlconf needs CPython 3.11 or newer; this is %s\n" % sys.version)
    sys.exit(2)

import start  # type: ignore[import-not-found]  # It is beside this module in the file.

start.main()
