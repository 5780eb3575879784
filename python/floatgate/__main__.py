"""The ``floatgate`` command: the extension module runs most subcommands, and this package runs those of many runs.

Subcommands in :data:`WORDS` are implemented in Python, all others in the extension module. The program that
``cargo install`` builds calls ``python3 -m floatgate`` for the subcommands in Python.
"""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from floatgate import _floatgate, policies
from floatgate._words import in_command, words_of_command
from floatgate.exceptions import FloatgateError, FloatgateWarning

if TYPE_CHECKING:
    from collections.abc import Callable

#: Subcommands implemented in Python: the module, and the function in it. The function takes the arguments after the
#: subcommand and returns the exit status.
WORDS = {
    "sweep": "floatgate.sweepfile:command",
    "optimize": "floatgate.optimizing:command",
    "fit": "floatgate.fitting:command",
    "fleet": "floatgate.fleets:command",
    "design": "floatgate.designing:command",
    "study": "floatgate.studies:command",
}

#: Function of the subcommand that draws a figure.
_FIGURES = "floatgate.comparison:command"

#: Exit statuses: invalid request, failure, and interruption by Ctrl-C.
MISTAKE, FAULT, INTERRUPTED = 2, 1, 130


def main() -> int:
    """Run the command line, and return the exit status."""
    word, arguments = sys.argv[1:2], sys.argv[2:]
    if word and (word[0] in WORDS or _draws(word[0], arguments)):
        with words_of_command():
            return _in_python(word[0], arguments)
    try:
        registered = _registered(arguments)
    except FloatgateError as error:
        return _told(f"error: --policies: {error}", MISTAKE)
    # The extension module handles Ctrl-C and then calls the previous handler. Python's handler would end the
    # interpreter by the signal, and the exit status would be lost.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _floatgate.command(["floatgate", *sys.argv[1:]], registered)


def _registered(arguments: list[str]) -> policies._OfCommand | None:
    """Import the files that `--policies` names, and return the policies that they register."""
    files = [argument.partition("=")[2] for argument in arguments if argument.startswith("--policies=")]
    files += [file for option, file in itertools.pairwise(arguments) if option == "--policies"]
    if not files:
        return None
    sys.path.insert(0, str(Path.cwd()))
    for file in files:
        policies._import(file)
    return policies._of_command()


def _draws(word: str, arguments: list[str]) -> bool:
    """Return True for the subcommand that draws a figure, which the program cannot."""
    return word == "compare" and any(argument.partition("=")[0] == "--plot" for argument in arguments)


def _in_python(word: str, arguments: list[str]) -> int:
    """Run a subcommand in Python, and report errors like the program."""
    module, function = WORDS.get(word, _FIGURES).split(":")
    try:
        command: Callable[[list[str]], int] = getattr(importlib.import_module(module), function)
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            status = command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, which is not an error. Discard the rest of the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:
        return _told(f"interrupted: {interrupt}" if interrupt.args else "interrupted", INTERRUPTED)
    except FloatgateError as error:
        return _told(f"error: {error}", MISTAKE if isinstance(error, ValueError) else FAULT)
    except ImportError as error:
        return _told(f"error: {in_command(str(error))}", MISTAKE)
    return status


def _warned(  # noqa: PLR0917 (the parameters of warnings.showwarning)
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning like the program does, without the place in the source."""
    if issubclass(category, FloatgateWarning):
        _told(f"warning: {message}", 0)
    else:
        (file or sys.stderr).write(warnings.formatwarning(message, category, filename, lineno, line))


def _told(text: str, status: int) -> int:
    sys.stderr.write(text + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
