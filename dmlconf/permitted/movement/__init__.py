"""Permitted results, besides the reference's, of moving, selecting and generating elements."""
