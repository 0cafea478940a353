"""Spread a run over many machines with Dask."""
