"""Cases under circumstances on the backend `directml`: a module for each, and what they share."""
