"""What excuses a failure: limits of a substrate, known faults of DirectML, and waivers."""
