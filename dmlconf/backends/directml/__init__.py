"""The backend `directml`: real DirectML through ctypes, on Windows and on WSL 2."""
