"""Step-by-step simulation of a device."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from floatgate import _floatgate, _values
from floatgate.device import Device
from floatgate.exceptions import WorkloadError
from floatgate.result import signed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from floatgate.workload import Progress, Workload

#: Bytes per sector, the unit of host addresses.
SECTOR = 512


@dataclass(frozen=True)
class State:
    """Contents of flash and map at a point in time: read-only arrays.

    The arrays are a snapshot, which does not change when the simulation continues. Blocks are numbered plane by plane,
    physical addresses of mapping units block by block.
    """

    #: Names of the values in `block_state`.
    BLOCK_STATES = ("free", "open", "closed", "victim", "awaiting_erase", "logical", "failed", "bad", "worn_out")
    #: Names of the values in `unit_state`. An invalid unit was overwritten, trimmed, or left without data.
    UNIT_STATES = ("free", "valid", "invalid")

    now: int
    """Simulated time, in picoseconds."""
    block_plane: npt.NDArray[np.uint32]
    """Plane. Indexed by block."""
    block_state: npt.NDArray[np.uint8]
    """Life-cycle state, a number in :data:`BLOCK_STATES`. Indexed by block."""
    block_valid: npt.NDArray[np.uint16]
    """Number of valid mapping units. Indexed by block."""
    block_erases: npt.NDArray[np.uint32]
    """Number of erases since the device was new. Indexed by block."""
    unit_state: npt.NDArray[np.uint8]
    """State of mapping units, a number in :data:`UNIT_STATES`. Shape: (blocks, units per block)."""
    unit_lpn: npt.NDArray[np.int64]
    """Logical unit that was programmed there, or -1. Same shape as `unit_state`."""
    map: npt.NDArray[np.int64]
    """Physical address, an index into the flattened `unit_lpn`. -1 if unmapped, -2 if the controller holds the unit
    because its program has not completed. Indexed by logical unit."""


class Simulator:
    """A device with a clock, which accepts requests and can be inspected.

    :func:`floatgate.run` is a loop over these methods. Times are integer picoseconds, or texts with a unit
    (``"25us"``). At equal times, internal events are processed first, then completions, then new requests.

    One call at a time can change a simulator. A call meanwhile, by another thread or by one of its policies, raises
    :class:`SimulationError`. Give each thread a :meth:`fork` of its own.

    Parameters
    ----------
    device
        The device, its name, or the path of its file.
    precondition
        Initial state, as in :func:`floatgate.run`.
    seed
        Random seed.
    attribution
        Record the latency breakdown of each request.
    progress
        A function that is called with the progress of preconditioning.

    Raises
    ------
    ConfigError
        The device does not exist.
    PreconditionError
        The device cannot be brought into this state.

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
        """Initial state: the requested and the reached state."""
        state: dict[str, Any] = json.loads(self._handle.precondition)
        return state

    @property
    def seed(self) -> int:
        """Random seed."""
        return self._seed

    @property
    def attribution(self) -> bool:
        """True if latency breakdowns are recorded."""
        return self._attribution

    @property
    def submitted(self) -> int:
        """Number of requests submitted so far."""
        return self._handle.submitted

    @property
    def now(self) -> int:
        """Simulated time, in picoseconds. All events up to this time have been processed."""
        return self._handle.now

    @property
    def next_event_time(self) -> int | None:
        """Time of the next event, in picoseconds; None if there is no event without another request."""
        return self._handle.next_event_time

    @property
    def outstanding(self) -> int:
        """Number of outstanding requests."""
        return self._handle.outstanding

    @property
    def has_room(self) -> bool:
        """True if the device accepts another request immediately. Otherwise, the request waits at the host."""
        return self._handle.has_room

    @property
    def is_idle(self) -> bool:
        """True if no request and no garbage collection is in progress."""
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
        """Submit a request.

        Parameters
        ----------
        operation
            The operation.
        address, length
            First byte and number of bytes, both multiples of 512, or texts such as ``"4KiB"``. A flush has neither.
        at
            Time of arrival. Default: now. All events up to this time are processed first.
        fua
            Complete a write only when its data are in flash.

        Returns
        -------
        int
            The number of the request, which its completion contains.

        Raises
        ------
        WorkloadError
            The operation is unknown, the range is not aligned to sectors, or `at` is in the past.
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
        """Advance simulated time.

        Parameters
        ----------
        until
            Process all events up to and including this time, and set the clock to it. By default, process all events
            that occur without another request. The clock then stays at the last event.
        progress
            A function that is called periodically.
        """
        self._handle.advance(None if until is None else _values.picoseconds(until), progress=progress)

    def completions(self) -> pa.Table:
        """Return the requests that have completed since the last call, in order of completion.

        Returns
        -------
        pyarrow.Table
            The columns of :meth:`Result.requests`; ``.to_pylist()`` converts them to dictionaries. A completion is
            returned as soon as nothing can change it, so ``finish_ps`` may be later than the clock.
        """
        return signed(self._handle.completions())

    def counters(self) -> dict[str, int]:
        """Return the counters since the device was created, including preconditioning.

        Those of an array are sums over its members. `log_blocks_associativity` is the number of logical blocks with
        valid units in the log blocks that were reclaimed, summed over these.
        """
        return dict(self._handle.counters())

    def inspect(self) -> State:
        """Return a snapshot of flash and map. Not available for an array.

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
        """Return a copy with the same state and the same future. The two are independent from then on."""
        other = Simulator.__new__(Simulator)
        other._device = self._device
        other._seed = self._seed
        other._attribution = self._attribution
        other._path = self._path
        other._handle = self._handle.fork()
        return other

    def save(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        """Write the state to a file, so that an aged device has to be prepared only once.

        The device must be idle: no outstanding requests, no pending events, and no dirty units in the buffer. The file
        contains flash, map and the state of the policies, but not the clock and not the counters over time. The file of
        an array contains these of all members.

        Parameters
        ----------
        path
            Path of the file. It is written atomically.
        progress
            A function that is called periodically.

        Raises
        ------
        OutputError
            The file cannot be written, the device is not idle, or one of its policies cannot be saved.

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
        """Create a simulator in a state saved by :meth:`save` or by ``floatgate run --save-state``.

        Its clock is at 0, its buffer is empty, and its future is the same as that of the saved simulator.

        Parameters
        ----------
        path
            The file.
        device
            The device that gets the state. Default: the device in the file. It may differ from that device in
            parameters that do not affect the state: times, bus, scheduler, controller, buffer and host.
        seed
            Seed of the random numbers that are not part of the state, also used by :func:`floatgate.run`. Default: the
            seed in the file.
        attribution
            Record the latency breakdown of each request.
        progress
            A function that is called periodically.

        Raises
        ------
        PreconditionError
            The file is not a saved state, is damaged, or `device` differs in a parameter that affects the state. The
            error contains the parameter with both values.

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
        """Return a simulator of another device, which may differ in parameters that do not affect the state."""
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

    def __reduce__(self) -> Any:  # noqa: ANN401 (it raises)
        raise TypeError("a simulator cannot be pickled; save its state by Simulator.save, and load the file")

    def __repr__(self) -> str:
        return f"<floatgate.Simulator {self._device.name} at {self.now / 1e6:.3f} us, {self.outstanding} outstanding>"


def _array(table: pa.Table, name: str) -> Any:  # noqa: ANN401 (its type is that of the column)
    """Return a column as an array, without a copy."""
    return table[name].chunk(0).to_numpy(zero_copy_only=True)
