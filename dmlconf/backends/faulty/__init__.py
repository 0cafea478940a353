"""The backend `faulty`: the reference with a fault or a level, to test dmlconf itself."""
