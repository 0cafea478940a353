"""What is attached to a release besides the wheel and the sdist: docs/installation.md."""
