"""Run a plan: execute it on a backend, judge every outcome, keep the log."""
