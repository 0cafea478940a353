"""Text that commands show about operators, cases and devices."""
