"""What graphs may compute, whose nodes each may be off within their own limits."""
