"""Run the command line as `python -m dmlconf`."""

from dmlconf.cli.entry_point import main

if __name__ == "__main__":
    main()
