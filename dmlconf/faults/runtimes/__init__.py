"""What other runtimes give in place of DirectML's results, as formulas."""
