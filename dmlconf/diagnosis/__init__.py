"""Find what failures of a run share: the shortest conditions over facts of their cases' descs."""
