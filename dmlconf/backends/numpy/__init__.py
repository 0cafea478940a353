"""The backend `numpy`: the reference as a backend."""
