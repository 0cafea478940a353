"""What commands show about operators, cases and devices, and the server of a history's pages."""
