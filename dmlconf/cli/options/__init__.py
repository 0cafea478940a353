"""Options of commands, most of which several commands share."""
