"""Exceptions of the package, by cause.

The messages are those of the ``floatgate`` command. They contain what is wrong, where, and what to do.
"""

from __future__ import annotations

from typing import NamedTuple


class FloatgateError(Exception):
    """Base class of all exceptions of this package."""


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
