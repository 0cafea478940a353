"""Reports on runs, comparisons, suites and more: functions that return text, data or pages."""
