"""The ``floatgate`` command: the code of the program that ``cargo install`` makes, out of the extension module."""

import sys

from floatgate import _floatgate


def main() -> int:
    """Do what the command line asks for, and return the status to exit with."""
    return _floatgate.command(["floatgate", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
