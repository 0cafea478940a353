"""What excuses failures: limits of a substrate, known faults, deviations of a target, and waivers.

Findings, known mistakes of other runtimes, explain failures and excuse none.
"""
