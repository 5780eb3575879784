"""A device, step by step."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from floatgate import _floatgate, _values
from floatgate.device import Device
from floatgate.exceptions import WorkloadError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from floatgate.running import Progress
    from floatgate.workload import Workload

#: Bytes of a sector, the unit of the host's addresses.
SECTOR = 512


@dataclass(frozen=True)
class State:
    """What flash and map hold at an instant: arrays that cannot be written to.

    They are a snapshot: the device that goes on does not change them. Blocks are numbered plane after plane; places of
    mapping units block after block.
    """

    #: Names of the numbers in `block_state`.
    BLOCK_STATES = ("free", "open", "closed", "victim", "doomed", "logical", "failed", "bad")
    #: Names of the numbers in `unit_state`; stale: superseded, trimmed, or left without data.
    UNIT_STATES = ("free", "valid", "stale")

    now: int
    """The clock, in picoseconds."""
    block_plane: npt.NDArray[np.uint32]
    """By block: its plane."""
    block_state: npt.NDArray[np.uint8]
    """By block: where it is in its life, a number in :data:`BLOCK_STATES`."""
    block_valid: npt.NDArray[np.uint16]
    """By block: valid mapping units."""
    block_erases: npt.NDArray[np.uint32]
    """By block: erases since the device's birth."""
    unit_state: npt.NDArray[np.uint8]
    """By block and place in it, of shape (blocks, units of a block): a number in :data:`UNIT_STATES`."""
    unit_lpn: npt.NDArray[np.int64]
    """Of the same shape: the logical unit that was programmed there; -1 for none."""
    map: npt.NDArray[np.int64]
    """By logical unit: its place, an index into the flattened `unit_lpn`; -1 where it has none, -2 where the controller
    has it and its program has not ended."""


class Simulator:
    """A device with a clock, to send requests to and to look into.

    :func:`floatgate.run` is a loop over these calls. Instants are whole picoseconds; wherever one is taken, a text with
    a unit is, too (``"25us"``). At one instant what happens in the device comes first, then completions, then what is
    submitted.

    Parameters
    ----------
    device
        The device, its name, or the path of its file.
    precondition
        The state to begin with, as in :func:`floatgate.run`.
    seed
        Seed of all random numbers.
    attribution
        Tell of each request what its time went into.
    progress
        A function that is told how far preconditioning is.

    Raises
    ------
    ConfigError
        There is no such device.
    PreconditionError
        It cannot be brought into that state.

    Examples
    --------
    >>> simulator = fg.Simulator("tiny")
    >>> simulator.submit("read", 0, "4KiB", at="10us")
    0
    >>> simulator.advance()
    >>> simulator.completions()["latency_ps"].to_pylist()
    [...]
    """

    def __init__(
        self,
        device: Device | str | os.PathLike[str],
        *,
        precondition: str | Workload = "fill",
        seed: int = 1,
        attribution: bool = True,
        progress: Progress | None = None,
    ) -> None:
        self._device = device if isinstance(device, Device) else Device(device)
        self._seed = seed
        self._attribution = attribution
        self._path: str | None = None
        self._handle = _floatgate.Simulator(
            self._device._handle,
            precondition=str(precondition),
            seed=seed,
            attribution=attribution,
            progress=progress,
        )

    @property
    def device(self) -> Device:
        """The device."""
        return self._device

    @property
    def precondition(self) -> dict[str, Any]:
        """The state that it began with: what was asked for, and what was reached."""
        state: dict[str, Any] = json.loads(self._handle.precondition)
        return state

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""
        return self._seed

    @property
    def attribution(self) -> bool:
        """Whether requests tell what their time went into."""
        return self._attribution

    @property
    def submitted(self) -> int:
        """Requests that were sent so far."""
        return self._handle.submitted

    @property
    def now(self) -> int:
        """The clock, in picoseconds: all that happens up to here has happened."""
        return self._handle.now

    @property
    def next_event_time(self) -> int | None:
        """When something happens next, in picoseconds; None when nothing will without another request."""
        return self._handle.next_event_time

    @property
    def outstanding(self) -> int:
        """Requests that have not completed."""
        return self._handle.outstanding

    @property
    def has_room(self) -> bool:
        """Whether the device takes another request at once; if not, it waits at the host."""
        return self._handle.has_room

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in progress: no request, and no cleaning."""
        return self._handle.is_idle

    def submit(
        self,
        operation: Literal["read", "write", "trim", "write_zeroes", "flush"],
        address: int | str = 0,
        length: int | str = 0,
        *,
        at: int | str | None = None,
        fua: bool = False,
    ) -> int:
        """Send a request.

        Parameters
        ----------
        operation
            What to do.
        address, length
            First byte and number of bytes, both multiples of 512, or texts like ``"4KiB"``. A flush has none.
        at
            When; now where not given. All that happens up to then happens first.
        fua
            Complete a write only when flash has it.

        Returns
        -------
        int
            Its number, which its completion has.

        Raises
        ------
        WorkloadError
            There is no such operation, the place is no whole sectors, or `at` is in the past.
        """
        sectors = [_values.size_in_bytes(value) / SECTOR for value in (address, length)]
        if not all(value.is_integer() for value in sectors):
            raise WorkloadError(f"address {address} and length {length} must be multiples of {SECTOR} bytes")
        first, count = map(int, sectors)
        if not (first < 1 << 64 and count < 1 << 32):
            raise WorkloadError(f"address {address} or length {length} is too large for a request")
        instant = self.now if at is None else _values.picoseconds(at)
        return self._handle.submit(operation, first, count, instant, fua=fua)

    def advance(self, until: int | str | None = None, *, progress: Progress | None = None) -> None:
        """Let time pass.

        Parameters
        ----------
        until
            Everything up to and at this instant happens, and the clock goes there. Where not given, everything that
            will happen without another request, and the clock stays at the last of it.
        progress
            A function that is told now and then that it goes on.
        """
        self._handle.advance(None if until is None else _values.picoseconds(until), progress=progress)

    def completions(self) -> pa.Table:
        """Give the requests that have completed since the last call, in that order.

        Returns
        -------
        pyarrow.Table
            The columns of :meth:`Result.requests`; ``.to_pylist()`` makes dictionaries of them. A completion is known
            as soon as nothing can change it any more, so that ``finish_ps`` may lie ahead of the clock.
        """
        return self._handle.completions()

    def counters(self) -> dict[str, int]:
        """Give what was counted since the device was made, preconditioning included."""
        return dict(self._handle.counters())

    def inspect(self) -> State:
        """Look into flash and map.

        Returns
        -------
        State
            Read-only NumPy arrays.
        """
        blocks, units = self._handle.blocks(), self._handle.units()
        shape = (blocks.num_rows, -1)
        return State(
            now=self.now,
            block_plane=_array(blocks, "plane"),
            block_state=_array(blocks, "state"),
            block_valid=_array(blocks, "valid"),
            block_erases=_array(blocks, "erases"),
            unit_state=_array(units, "state").reshape(shape),
            unit_lpn=_array(units, "lpn").reshape(shape),
            map=_array(self._handle.map(), "place"),
        )

    def fork(self) -> Simulator:
        """Make another one of the same state and the same future; neither knows of the other from here on."""
        other = Simulator.__new__(Simulator)
        other._device = self._device
        other._seed = self._seed
        other._attribution = self._attribution
        other._path = self._path
        other._handle = self._handle.fork()
        return other

    def save(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        """Write the state to a file, so that an aged device is made once.

        It has to be at rest: nothing outstanding, nothing that will happen, and nothing in the buffer that flash does
        not have. What is saved is flash, map and what the policies know; not the clock, and not what was counted over
        time.

        Parameters
        ----------
        path
            Where to. The file is there when all of it is written, and not before.
        progress
            A function that is told that it goes on.

        Raises
        ------
        OutputError
            The file cannot be written, the device is not at rest, or one of its policies cannot be saved.

        Examples
        --------
        >>> fg.Simulator("tiny", precondition="steady").save("aged.fgstate")
        """
        self._handle.save(os.fspath(path), progress=progress)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        device: Device | str | os.PathLike[str] | None = None,
        *,
        seed: int | None = None,
        attribution: bool = True,
        progress: Progress | None = None,
    ) -> Simulator:
        """Make a simulator in a state that was saved, by :meth:`save` or by ``floatgate run --save-state``.

        Its clock is at 0, its buffer is empty, and its future is that of the one that was saved.

        Parameters
        ----------
        path
            The file.
        device
            The device to have the state; that of the file where none is given. It may differ from that one in what
            shapes no state: times, bus, scheduler, controller, buffer and host.
        seed
            Seed of the random numbers that are no part of the state, and the one that :func:`floatgate.run` takes; that
            of the file where none is given.
        attribution
            Tell of each request what its time went into.
        progress
            A function that is told that it goes on.

        Raises
        ------
        PreconditionError
            It is no such file, it is damaged, or an option that shaped it is another one in `device`: the error names
            the option with both values.

        Examples
        --------
        >>> fg.Simulator("tiny").save("filled.fgstate")
        >>> fg.Simulator.load("filled.fgstate", fg.Device("tiny", {"nand.read": "5us"})).precondition["requested"]
        'fill'
        """
        place = os.fspath(path)
        said: dict[str, Any] = json.loads(_floatgate.state_info(place))
        if device is None:
            device = Device.from_toml(said["config"] + "\n")
        loaded = cls.__new__(cls)
        loaded._device = device if isinstance(device, Device) else Device(device)
        loaded._seed = said["seed"] if seed is None else seed
        loaded._attribution = attribution
        loaded._path = place
        loaded._handle = _floatgate.Simulator.load(
            place, loaded._device._handle, seed=loaded._seed, attribution=attribution, progress=progress
        )
        return loaded

    def _in_same_state(self, device: Device, attribution: bool) -> Simulator:
        """Make one of another device, which may differ in what shapes no state."""
        other = Simulator.__new__(Simulator)
        other._device = device
        other._seed = self._seed
        other._attribution = attribution
        other._path = self._path
        other._handle = self._handle.in_same_state(device._handle, seed=self._seed, attribution=attribution)
        return other

    __copy__ = fork

    def __deepcopy__(self, _: dict[int, Any]) -> Simulator:
        return self.fork()

    def __repr__(self) -> str:
        return f"<floatgate.Simulator {self._device.name} at {self.now / 1e6:.3f} us, {self.outstanding} outstanding>"


def _array(table: pa.Table, name: str) -> Any:  # noqa: ANN401 (its type is that of the column)
    """Take a column as an array, without a copy."""
    return table[name].chunk(0).to_numpy(zero_copy_only=True)
