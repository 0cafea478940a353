"""One module per command, imported when the command is used (`common/command_table.py`)."""
