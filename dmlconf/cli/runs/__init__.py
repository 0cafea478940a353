"""Parts of commands that run cases."""
