"""The entry point of `python -m incsnap`: the command line, for when the console script is not on the path."""

from incsnap.cli.main import main

if __name__ == "__main__":
    main()
