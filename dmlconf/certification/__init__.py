"""Self-certification: which cases a certificate must hold verdicts on, and which verdicts."""
