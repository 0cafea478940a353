"""Find a loaded DirectML on Windows and Linux, and replace functions in it."""
