"""How the backend `directml` runs a case under circumstances: a module for each."""
