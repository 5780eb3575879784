"""Saved states: which files are ones, and states that runs of a sweep share."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from floatgate import _floatgate
from floatgate._files import draft
from floatgate.exceptions import FloatgateError
from floatgate.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from floatgate.device import Device

#: What the file of a state begins with.
_MAGIC = b"FGSTATE\n"


def saved(precondition: object) -> str | None:
    """Give the path of a saved state, where a precondition is one; None for words and workloads."""
    if not isinstance(precondition, str | os.PathLike):
        return None
    path = os.fspath(precondition)
    try:
        # The first bytes of a pipe would be missing when it is read.
        if not Path(path).is_file():
            return None
        with Path(path).open("rb") as file:
            is_state = file.read(len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return None
    return str(path) if is_state else None


class Task(Protocol):
    """A run of a sweep, as far as its state goes."""

    @property
    def precondition(self) -> str:
        """What was asked for."""

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""

    @property
    def attribution(self) -> bool:
        """Whether requests tell what their time went into."""

    @property
    def states(self) -> str | None:
        """The directory of shared states."""

    def chosen(self) -> Device:
        """Give the device."""


_T = TypeVar("_T", bound=Any)


def _key(task: Task) -> str | None:
    """Name the state that a run begins with, where others may have the same: 32 hexadecimal digits."""
    try:
        # A trace is read by each run, as far as it goes; and a state that is in a file already is loaded by each.
        if task.precondition == "none" or "trace=" in task.precondition or Path(task.precondition).is_file():
            return None
        if task.chosen().policies:
            return None  # What a policy in Python knows is in no saved state.
        said = [task.chosen().state_digest, task.precondition, str(task.seed), _floatgate.__version__]
    except (FloatgateError, OSError):
        return None  # The run itself says what is wrong.
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:32]


def _place(directory: str, key: str) -> Path:
    return Path(directory) / f"{key}.fgstate"


@dataclasses.dataclass(frozen=True)
class _Maker:
    """Makes a state for the runs that share it."""

    task: Any
    directory: str
    key: str

    def row(self) -> dict[str, Any]:
        """Make it; where that cannot be, each run finds out by itself, and says so."""
        place = _place(self.directory, self.key)
        if place.exists():
            return {}
        task = self.task
        with contextlib.suppress(FloatgateError, OSError):
            simulator = Simulator(
                task.chosen(), precondition=task.precondition, seed=task.seed, attribution=task.attribution
            )
            # Two that make the same at the same time write different files, of the same content.
            with draft(place) as partial:
                simulator.save(partial)
        return {}


@contextlib.contextmanager
def shared(
    tasks: list[_T],
    store: str | os.PathLike[str] | None,
    each: Callable[[list[Any]], Iterable[tuple[int, dict[str, Any]]]],
) -> Iterator[list[_T]]:
    """Make the states that several runs begin with, once each, and give the runs that know where they are.

    The states are in a directory of their own, in the store where there is one, which goes in the end. Runs on machines
    that do not see it make their states themselves.

    Parameters
    ----------
    tasks
        The runs.
    store
        The directory of the store.
    each
        Makes them, in parallel.
    """
    keys = [_key(task) for task in tasks]
    count = Counter(key for key in keys if key is not None)
    makers: dict[str, tuple[_T, str]] = {
        key: (task, key) for task, key in reversed(list(zip(tasks, keys, strict=True))) if key and count[key] > 1
    }
    if not makers:
        yield tasks
        return
    with tempfile.TemporaryDirectory(prefix=".states-", dir=store, ignore_cleanup_errors=True) as directory:
        for _ in each([_Maker(task, directory, key) for task, key in makers.values()]):
            pass
        yield [
            dataclasses.replace(task, states=directory) if key in makers else task
            for task, key in zip(tasks, keys, strict=True)
        ]


def device_of(task: Task, directory: str | None) -> Device | Simulator:
    """Give what a run begins with: its device in the state that was made for it, or else its device."""
    key = None if directory is None else _key(task)
    if directory is None or key is None or not _place(directory, key).exists():
        return task.chosen()
    try:
        simulator = Simulator.load(_place(directory, key), task.chosen(), seed=task.seed, attribution=task.attribution)
    except FloatgateError:
        return task.chosen()
    # The run is that of its own options, which make this state: the file goes with the sweep.
    simulator._path = None
    return simulator
