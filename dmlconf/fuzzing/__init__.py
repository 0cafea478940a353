"""Cases made by chance: descs and graphs, from the catalogue alone."""
