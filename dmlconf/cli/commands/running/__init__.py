"""Commands that run cases, and that show operators, cases, devices and configuration."""
