"""Reports on runs, comparisons, suites and more, as text, data and pages."""
