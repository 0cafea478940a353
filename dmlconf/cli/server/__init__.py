"""The web server of `dmlconf history serve`, which shows the pages of a history."""
