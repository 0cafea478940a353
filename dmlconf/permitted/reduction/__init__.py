"""How far reductions may be from the reference's outputs."""
