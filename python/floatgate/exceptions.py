"""Exceptions of the package, by cause.

The messages are those of the ``floatgate`` command. They contain what is wrong, where, and what to do.
"""

from __future__ import annotations

from typing import NamedTuple

from floatgate._words import in_python


class FloatgateError(Exception):
    """Base class of all exceptions of this package."""

    def __str__(self) -> str:
        """Return the message, with parameters of the package in place of options of the command."""
        return in_python(self.said)

    @property
    def said(self) -> str:
        """The message in the words of the command."""
        return str(self.args[0]) if self.args else ""


def _raised(name: str, text: str) -> FloatgateError:
    """Create an exception of the simulator, by its name."""
    kind: type[FloatgateError] = globals()[name]
    return kind(text)


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
