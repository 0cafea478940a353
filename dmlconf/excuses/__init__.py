"""What excuses failures: limits of a substrate, known faults, deviations of a target, and waivers.

Findings in other runtimes explain failures and excuse none.
"""
