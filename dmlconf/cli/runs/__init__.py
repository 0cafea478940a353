"""Run cases from commands: each module drives the engine for one purpose."""
