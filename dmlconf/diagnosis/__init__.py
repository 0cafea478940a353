"""Explain failures: the conditions that those of a run share, and what is to blame for one."""
