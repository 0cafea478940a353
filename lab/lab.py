#!/usr/bin/env python3
"""Build and use the Wine lab: Microsoft's DirectML.dll on Linux. See docs/wine-lab.md."""

import sys

from winelab.cli import main

if __name__ == "__main__":
    sys.exit(main())
