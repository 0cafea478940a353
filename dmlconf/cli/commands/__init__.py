"""A module for each command, which `common/command_table.py` imports when the command is used."""
