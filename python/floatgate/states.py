"""Saved states: identifies their files, and shares states between the runs of a sweep."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
from collections import Counter
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from floatgate import _floatgate
from floatgate._files import draft, scratch
from floatgate.exceptions import FloatgateError
from floatgate.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from floatgate.device import Device

#: First bytes of the state files of a single SSD and of an array.
_MAGIC = (b"FGSTATE\n", b"FGARRAY\n")


def saved(precondition: object) -> str | None:
    """Return the path of a saved state if a precondition is one, otherwise None."""
    if not isinstance(precondition, str | os.PathLike):
        return None
    path = os.fspath(precondition)
    try:
        # Reading the first bytes of a pipe would remove them.
        if not Path(path).is_file():
            return None
        with Path(path).open("rb") as file:
            is_state = file.read(len(_MAGIC[0])) in _MAGIC
    except (OSError, ValueError):
        return None
    return str(path) if is_state else None


class Task(Protocol):
    """The parts of a sweep's run that determine its initial state."""

    @property
    def precondition(self) -> str:
        """Requested state."""

    @property
    def seed(self) -> int:
        """Random seed."""

    @property
    def attribution(self) -> bool:
        """True if latency breakdowns are recorded."""

    @property
    def state(self) -> str | None:
        """File of the state that other runs share."""

    @property
    def chosen(self) -> Device:
        """The device."""


_T = TypeVar("_T", bound=Any)

#: Directory of the states that several sweeps share, or None.
_KEPT: ContextVar[str | None] = ContextVar("states of several sweeps", default=None)


@contextlib.contextmanager
def kept(store: str | os.PathLike[str] | None) -> Iterator[None]:
    """Keep all states of the sweeps within this context until its end, so that later sweeps start from them.

    Parameters
    ----------
    store
        The directory of the store, in which the directory of the states is created, or None.
    """
    with scratch(".states-", store) as directory:
        token = _KEPT.set(directory)
        try:
            yield
        finally:
            _KEPT.reset(token)


def _key(task: Task, known: dict[tuple[str, str], bool] | None = None) -> str | None:
    """Return a key of the initial state of a run, 32 hexadecimal digits, or None if the state cannot be shared.

    Parameters
    ----------
    task
        The run.
    known
        States of which it is known whether all seeds prepare them equally, to which others are added. The key of such a
        state has no seed. None: all runs have one seed.
    """
    try:
        # A trace is read only as far as each run needs it, and a state in a file is loaded by each run.
        if task.precondition == "none" or "trace=" in task.precondition or Path(task.precondition).is_file():
            return None
        if task.chosen.policies:
            return None  # Saved states do not contain the state of policies in Python.
        state = (task.chosen.state_digest, task.precondition)
        if known is not None and state not in known:
            known[state] = task.chosen._handle.has_one_state(task.precondition)
        seed = "" if known is not None and known[state] else str(task.seed)
        said = [*state, seed, _floatgate.__version__]
    except (FloatgateError, OSError):
        return None  # The run itself reports the error.
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:32]


def _place(directory: str, key: str) -> Path:
    return Path(directory) / f"{key}.fgstate"


@dataclasses.dataclass(frozen=True)
class _Maker:
    """Creates a state for the runs that share it."""

    task: Any
    directory: str
    key: str

    def row(self) -> dict[str, Any]:
        """Create the state. If this fails, each run reports the error itself."""
        place = _place(self.directory, self.key)
        if place.exists():
            return {}
        task = self.task
        with contextlib.suppress(FloatgateError, OSError):
            simulator = Simulator(
                task.chosen, precondition=task.precondition, seed=task.seed, attribution=task.attribution
            )
            # Two workers that create the same state at the same time write different files with the same content.
            with draft(place) as partial:
                simulator.save(partial)
        return {}


@contextlib.contextmanager
def shared(
    tasks: list[_T],
    store: str | os.PathLike[str] | None,
    each: Callable[[list[Any]], Iterable[tuple[int, dict[str, Any]]]],
) -> Iterator[list[_T]]:
    """Create each state that several runs start from once, and yield the runs with the files of these states.

    Their directory is temporary, inside the store if there is one. Runs on machines that cannot access it create their
    states themselves. Within :func:`kept`, states of single runs are created as well, and all states remain.

    Parameters
    ----------
    tasks
        The runs.
    store
        The directory of the store.
    each
        A function that creates the states, in parallel.
    """
    known: dict[tuple[str, str], bool] | None = {} if len({task.seed for task in tasks}) > 1 else None
    keys = [_key(task, known) for task in tasks]
    count = Counter(key for key in keys if key is not None)
    makers: dict[str, tuple[_T, str]] = {
        key: (task, key)
        for task, key in reversed(list(zip(tasks, keys, strict=True)))
        if key and (count[key] > 1 or _KEPT.get() is not None)
    }
    if not makers:
        yield tasks
        return
    of_context = _KEPT.get()
    with scratch(".states-", store) if of_context is None else contextlib.nullcontext(of_context) as directory:
        missing = [_Maker(task, directory, key) for task, key in makers.values() if not _place(directory, key).exists()]
        for _ in each(missing):
            pass
        yield [
            dataclasses.replace(task, state=str(_place(directory, key))) if key in makers and key is not None else task
            for task, key in zip(tasks, keys, strict=True)
        ]


def device_of(task: Task) -> Device | Simulator:
    """Return the simulator in the shared state of a run, or the device if there is no shared state."""
    if task.state is None or not Path(task.state).exists():
        return task.chosen
    try:
        simulator = Simulator.load(task.state, task.chosen, seed=task.seed, attribution=task.attribution)
    except FloatgateError:
        return task.chosen
    # The run uses its own options, which lead to this state, because the file is deleted with the sweep.
    simulator._path = None
    return simulator
