"""Self-certification: the cases that need verdicts in a certificate, and the allowed verdicts."""
