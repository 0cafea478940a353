"""Spread a run over many machines with Dask.

`cluster` talks to Dask's scheduler, and `service` runs on its workers. `assignments` decides which
worker gets which cases, `dispatch` runs a plan on the workers, and `target` makes the targets.
"""
