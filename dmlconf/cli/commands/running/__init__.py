"""Commands that run cases, and say what there is to run."""
