"""Cases under circumstances on the backend `directml`; one module per circumstance."""
