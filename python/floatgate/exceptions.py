"""Exceptions of the package, by cause.

The messages are those of the ``floatgate`` command. They contain what is wrong, where, and what to do.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: Options of the command, with the parameters of the package that correspond to them.
_PARAMETERS = {
    "action": "action", "attribution": "attribution", "columns": "format", "devices": "devices",
    "endurance-scale": "endurance_scale", "fit": "fit", "format": "format", "limit": "limit",
    "load-state": "precondition", "max-gap": "max_gap", "out": "out", "precondition": "precondition",
    "prewrite": "prewrite", "replay": "replay", "requests": "requests", "save-state": "Simulator.save",
    "scale-footprint": "scale_footprint", "scale-rate": "scale_rate", "seed": "seed", "seeds": "seeds",
    "series": "series", "set": "with_options", "size": "size", "skip-bad-lines": "skip_bad_lines",
    "sort-window": "sort_window", "time-scale": "time_scale", "time-unit": "time_unit", "timeline": "timeline",
    "title": "title", "until": "until",
}  # fmt: skip

#: An option, and its value if the text names one: a placeholder, a number with or without a unit, or a known word.
_OPTION = re.compile(
    r"(?<![\w-])--([a-z][a-z-]*[a-z])"
    r"(?:[= ]((?:none|fill|steady|asap|timed|refuse|wrap|compact|worn-out)\b|(?:aged|invalid|depth)=[\w.%]+"
    r"|[A-Z]+\b|\d[\w.]*(?:\.\.\d[\w.]*)?))?"
)


def in_python(text: str) -> str:
    """Name the options of the command in a text by the parameters of the package.

    Command lines stay as they are, because they are to be run as commands.

    Examples
    --------
    >>> in_python("--prewrite is for new data; give --precondition none")
    'prewrite= is for new data; give precondition="none"'
    """

    def named(found: re.Match[str]) -> str:
        name, value = _PARAMETERS.get(found[1]), found[2]
        if name is None:
            return found[0]
        if name in ("with_options", "Simulator.save"):
            return found[0].replace(f"--{found[1]}", name)
        if value is None:
            return f"{name}="
        plain = value.isupper() or (value.isdecimal() and name not in ("timeline", "series"))
        return f"{name}={value}" if plain else f'{name}="{value}"'

    lines = (line if line.lstrip().startswith("floatgate ") else _OPTION.sub(named, line) for line in text.split("\n"))
    return "\n".join(lines)


def in_command(text: str) -> str:
    """Name the number of parallel runs in a text by the option of the command.

    Examples
    --------
    >>> in_command("set n_jobs=1")
    'set --jobs 1'
    """
    return text.replace("n_jobs=", "--jobs ")


class FloatgateError(Exception):
    """Base class of all exceptions of this package."""


def _raised(name: str, text: str) -> FloatgateError:
    """Create an exception of the simulator, by its name."""
    kind: type[FloatgateError] = globals()[name]
    return kind(in_python(text))


class Problem(NamedTuple):
    """A problem with a device."""

    path: str
    """Parameter, such as ``gc.soft_threshold``; empty if the text cannot be parsed."""
    message: str
    """Description: what is wrong, what is allowed, and why."""


class ConfigError(FloatgateError, ValueError):
    """A device does not exist, cannot be read, or is invalid."""

    problems: tuple[Problem, ...] = ()
    """Problems by parameter, if the configuration is invalid."""

    def _set_problems(self, problems: list[tuple[str, str]]) -> None:
        self.problems = tuple(Problem(path, message) for path, message in problems)


class OptionError(FloatgateError, ValueError):
    """An option is unknown, has an invalid value, or would have no effect."""


class WorkloadError(FloatgateError, ValueError):
    """A workload cannot be read, or is impossible to run."""


class TraceError(WorkloadError):
    """A trace cannot be read, or does not fit the device."""


class PreconditionError(FloatgateError, ValueError):
    """The device cannot be brought into a state."""


class SimulationError(FloatgateError, RuntimeError):
    """A run cannot continue, for example because simulated time has reached its end."""


class PolicyError(SimulationError):
    """A policy in Python raised an exception, which is the cause, or returned an invalid value."""


class OutputError(FloatgateError, OSError):
    """An output file cannot be written."""


class ResultError(FloatgateError, ValueError):
    """A result cannot be read, or does not contain the requested data."""


class InternalError(FloatgateError, RuntimeError):
    """A bug in the simulator: please report it."""


class FloatgateWarning(UserWarning):
    """A warning about a result: see ``result.summary["warnings"]``."""
