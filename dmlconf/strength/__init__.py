"""The strength of a suite: the share of defects, injected into right outputs, that it catches."""
