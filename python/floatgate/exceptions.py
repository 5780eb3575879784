"""What can go wrong, by what it is about.

The texts are those that the ``floatgate`` command prints: they say what is wrong, where, and what to do.
"""

from __future__ import annotations

from typing import NamedTuple


class FloatgateError(Exception):
    """The base of all exceptions of this package."""


class Problem(NamedTuple):
    """One thing that is wrong with a device."""

    path: str
    """The figure, like ``gc.soft_threshold``; empty where the text does not get that far."""
    message: str
    """What is wrong with it, what is allowed, and why."""


class ConfigError(FloatgateError, ValueError):
    """A device that does not exist, cannot be read, or cannot be built."""

    problems: tuple[Problem, ...] = ()
    """What is wrong at which figure, where that is the matter."""

    def _set_problems(self, problems: list[tuple[str, str]]) -> None:
        self.problems = tuple(Problem(path, message) for path, message in problems)


class OptionError(FloatgateError, ValueError):
    """An option of a run that is not known, has no such value, or would do nothing."""


class WorkloadError(FloatgateError, ValueError):
    """A workload that cannot be read, or asks for what cannot be."""


class TraceError(WorkloadError):
    """A trace that cannot be read, or does not fit the device."""


class PreconditionError(FloatgateError, ValueError):
    """A state that the device cannot be brought into."""


class SimulationError(FloatgateError, RuntimeError):
    """A run that cannot go on, such as one that has come to the end of simulated time."""


class PolicyError(SimulationError):
    """A policy in Python has raised, which is the cause of this, or has answered what cannot be."""


class OutputError(FloatgateError, OSError):
    """A file of a result that cannot be written."""


class ResultError(FloatgateError, ValueError):
    """A result that cannot be read, or does not hold what was asked of it."""


class InternalError(FloatgateError, RuntimeError):
    """A defect of the simulator: please report it."""


class FloatgateWarning(UserWarning):
    """What has to be known of a result: see ``result.summary["warnings"]``."""
