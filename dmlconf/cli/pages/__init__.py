"""What commands show about operators, cases and devices."""
