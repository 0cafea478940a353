"""Commands that run or show cases, show operators and known faults, or check this machine."""
