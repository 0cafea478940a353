"""How far recurrent layers may be from the reference's outputs."""
