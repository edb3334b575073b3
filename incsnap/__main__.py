"""``python -m incsnap``: the command line, wherever the console script is not on the path."""

from incsnap.cli.main import main

if __name__ == "__main__":
    main()
