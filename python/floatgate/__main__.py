"""The ``floatgate`` command: the code of the program that ``cargo install`` makes, and what is made of many runs.

The words of :data:`WORDS` are this package's own; all others are done by the extension module. The program without
Python knows these words, too, and calls ``python3 -m floatgate`` for them.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from floatgate import _floatgate
from floatgate.exceptions import FloatgateError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Words that are done in Python: the module, and the function in it that takes the arguments behind the word and
#: returns the status to exit with.
WORDS = {
    "sweep": "floatgate.sweepfile:command",
    "optimize": "floatgate.optimizing:command",
    "fleet": "floatgate.fleets:command",
    "design": "floatgate.designing:command",
    "study": "floatgate.studies:command",
}

#: The statuses of the program: what was asked for cannot be, went wrong, or was stopped by Ctrl-C.
MISTAKE, FAULT, INTERRUPTED = 2, 1, 130


def main() -> int:
    """Do what the command line asks for, and return the status to exit with."""
    word, arguments = sys.argv[1:2], sys.argv[2:]
    if word and word[0] in WORDS:
        return _in_python(word[0], arguments)
    # The extension module handles Ctrl-C and calls the handler that was there before. That of Python would end the
    # interpreter by the signal in place of the status.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _floatgate.command(["floatgate", *sys.argv[1:]])


def _in_python(word: str, arguments: list[str]) -> int:
    """Call a word, and tell errors as the program does."""
    module, function = WORDS[word].split(":")
    try:
        command: Callable[[list[str]], int] = getattr(importlib.import_module(module), function)
        status = command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads what is printed any more, which is no failure. What is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:
        return _told(f"interrupted: {interrupt}" if interrupt.args else "interrupted", INTERRUPTED)
    except FloatgateError as error:
        return _told(f"error: {error}", MISTAKE if isinstance(error, ValueError) else FAULT)
    except ImportError as error:
        return _told(f"error: {error}", MISTAKE)
    return status


def _told(text: str, status: int) -> int:
    sys.stderr.write(text + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
