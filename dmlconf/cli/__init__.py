"""The command line: `commands` has a module for each command, imported when it is used."""
