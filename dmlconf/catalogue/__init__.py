"""The operators as documented: the contents of `schemas/operators/*.yaml` as frozen values."""
