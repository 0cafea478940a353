"""Excuses for failures: limits of a substrate, known faults of DirectML, and waivers."""
