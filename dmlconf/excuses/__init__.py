"""What excuses failures: a substrate's limits, known faults, a target's deviations, and waivers.

Findings (known mistakes of other runtimes) explain failures and excuse none.
"""
