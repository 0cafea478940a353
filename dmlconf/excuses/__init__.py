"""What excuses failures: limits of a substrate, known faults, deviations of a target, and waivers.

Findings, the known mistakes of other runtimes, explain failures but do not excuse them.
"""
