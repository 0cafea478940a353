"""Print which planted defects fuzzing finds: `python -m tests.fuzzing [SEED]`."""

from __future__ import annotations

import sys

from tests.diagnosis.defects import DEFECTS
from tests.fuzzing.planted import find, table

MOST = 2000
"""The most cases for a defect; `docs/fuzzing.md` names this number."""

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
print("\n".join(table(find(defect, seed, MOST) for defect in DEFECTS)))
