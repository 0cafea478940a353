"""How strong a suite is: which share of defects, injected into correct outputs, it catches."""
