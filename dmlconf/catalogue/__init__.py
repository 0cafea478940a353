"""The operators as documented: what `schemas/operators/*.yaml` says, as frozen values."""
