"""Certificates: profiles say what they must hold; they are made, signed and verified."""
