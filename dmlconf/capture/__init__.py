"""Capture what an application gives to DirectML, and write it as cases."""
