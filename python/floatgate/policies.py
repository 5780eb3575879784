"""Custom policies in Python.

A policy is a subclass of one of the classes here. It is registered by name, and devices use the name like that of a
built-in policy::

    import floatgate as fg

    @fg.policies.register("coldest")
    class Coldest(fg.policies.Victim):
        def choose(self, plane, blocks, clock):
            return blocks["changed"].argmin()

    device = fg.Device("tiny").with_options({"gc.victim": "coldest"})

Policies receive read-only NumPy arrays. Those of victim policies, allocations and schedulers are the simulator's own
columns, without a copy: they are valid during a call, and show other values later. Copy what you keep. An exception in
a policy ends the run with :class:`floatgate.PolicyError`, whose cause is that exception with its traceback. An invalid
return value also ends the run. A policy has its own random numbers, ``self.rng``, determined by the seed of the run.
Devices and results contain the digest of the policy's source, so that results of different sources can be
distinguished.

If ``choose`` of a victim policy or an allocation, or ``pick`` of a scheduler, is a static method that
``numba.njit`` compiles, the simulator calls the machine code directly::

    @fg.policies.register("least-valid")
    class LeastValid(fg.policies.Victim):
        @staticmethod
        @numba.njit
        def choose(plane, blocks, clock):
            return blocks.valid.argmin()

A simulator that is forked, or from which a run starts, copies its policies: :meth:`Policy.fork`.
"""

from __future__ import annotations

import copy
import enum
import functools
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import json
import operator
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from collections.abc import Mapping as Table
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from floatgate import _compiling, _floatgate
from floatgate._files import near
from floatgate._floatgate import (
    PADDING,
    Block,
    BlockState,
    Bound,
    Call,
    Change,
    Context,
    Copy,
    Ended,
    FoundBlock,
    FoundMerge,
    Ftl,
    Gather,
    InHand,
    KeptBlock,
    Kind,
    Location,
    LookUp,
    PageMap,
    Place,
    Program,
    ProgramCause,
    Purpose,
    Recovering,
    Role,
    SchemeReport,
    Shape,
    Space,
    Step,
    Target,
    Tasks,
    Transaction,
    Transactions,
    WaitCause,
)
from floatgate.exceptions import ConfigError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from floatgate.device import Device

__all__ = [
    "PADDING",
    "Allocation",
    "Block",
    "BlockState",
    "Blocks",
    "Bound",
    "Call",
    "Change",
    "Classifier",
    "Context",
    "Copy",
    "Ended",
    "Eviction",
    "FoundBlock",
    "FoundMerge",
    "Ftl",
    "Gather",
    "HostWrite",
    "InHand",
    "KeptBlock",
    "Kind",
    "Location",
    "LookUp",
    "Mapping",
    "OperationClass",
    "PageMap",
    "Place",
    "PlaneState",
    "Policy",
    "Program",
    "ProgramCause",
    "Purpose",
    "Queue",
    "Recovering",
    "Role",
    "Scheduler",
    "SchemeReport",
    "Shape",
    "Space",
    "StaticAllocation",
    "Step",
    "Target",
    "Tasks",
    "Transaction",
    "Transactions",
    "Trigger",
    "Unsaved",
    "Victim",
    "WaitCause",
    "Wear",
    "WholeMap",
    "check",
    "give_up",
    "keep_found",
    "register",
    "registered",
]


class Policy(ABC):
    """Base class of policies of all families.

    A subclass may have an ``__init__``. Its keyword parameters are the policy's options, which a device sets as
    ``{"gc.victim": {"coldest": {"weight": 2}}}``. Each device that is created has its own policy object, and a device
    that keeps its map in flash has two victim policies.
    """

    path: ClassVar[str] = ""
    """Key of the device that names a policy of this family."""
    name: ClassVar[str] = ""
    """Name by which the policy is registered."""
    device: Table[str, Any]
    """All parameters of the device, as in ``Device.config``."""
    shape: Shape
    """Planes of the device, and units of a block, as policies see them: with ``nand.concurrency = "plane-reads"``, a
    die is one plane, with the number (channel * chips + chip) * dies + die."""
    rng: np.random.Generator
    """Random numbers, determined by the seed of the run, the family and the name."""

    def fork(self) -> Policy:
        """Return a policy with the same state and the same future, for a copy of the device.

        Returns
        -------
        Policy
            A deep copy, including random numbers. Override this method if the policy shares data on purpose, or holds
            data that cannot be copied, such as an open file.
        """
        # Objects of the simulator are not copied, because the parameters of the device do not change.
        given = {id(value): value for value in (self.device, self.shape, vars(self).get("_units"))}
        return copy.deepcopy(self, given)

    @classmethod
    def _address(cls) -> int | None:
        """Return the address of the compiled function that chooses, or None if it is not compiled."""
        return None


class Blocks:
    """Closed blocks of a plane, in columns: read-only NumPy arrays, which are valid during the call.

    ``blocks["valid"]`` is the same as ``blocks.valid``. The blocks are in no particular order, but in the same one for
    the same seed.
    """

    __slots__ = ("block", "changed", "closed", "erases", "order", "valid")

    block: npt.NDArray[np.uint32]
    """Number in the device."""
    valid: npt.NDArray[np.uint16]
    """Number of valid mapping units."""
    erases: npt.NDArray[np.uint32]
    """Number of erases."""
    closed: npt.NDArray[np.int64]
    """Clock when the block was closed."""
    changed: npt.NDArray[np.int64]
    """Clock when a unit was last invalidated, or when the block was closed."""
    order: npt.NDArray[np.uint64]
    """Rank in the order of ``greedy``: by valid units, and among equally many by when a block reached this number."""

    def __init__(  # noqa: PLR0917 (the columns)
        self,
        block: npt.NDArray[np.uint32],
        valid: npt.NDArray[np.uint16],
        erases: npt.NDArray[np.uint32],
        closed: npt.NDArray[np.int64],
        changed: npt.NDArray[np.int64],
        order: npt.NDArray[np.uint64],
    ) -> None:
        self.block, self.valid, self.erases = block, valid, erases
        self.closed, self.changed, self.order = closed, changed, order

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        return _column(self, column)

    def __len__(self) -> int:
        return len(self.block)


def _column(columns: object, name: str) -> npt.NDArray[Any]:
    """Return a column, whose name may be a keyword of Python."""
    names = [slot.removesuffix("_") for slot in type(columns).__slots__]  # type: ignore[attr-defined]
    if name not in names:
        raise KeyError(f"no column {name!r}{near(str(name), names)}; there are {', '.join(names)}")
    found: npt.NDArray[Any] = getattr(columns, "class_" if name == "class" else name)
    return found


class Victim(Policy):
    """Chooses the block of a plane that garbage collection reclaims next (``gc.victim``)."""

    path = "gc.victim"

    @abstractmethod
    def choose(self, plane: int, blocks: Blocks, clock: int) -> int:
        """Choose a victim.

        Called once per reclaimed block, if the plane has reclaimable space.

        Parameters
        ----------
        plane
            Number of the plane: ((channel * chips + chip) * dies + die) * planes + plane.
        blocks
            Closed blocks of the plane, one or more.
        clock
            Mapping units that the host has written so far.

        Returns
        -------
        int
            The position of the victim in `blocks`.
        """

    @classmethod
    def _address(cls) -> int | None:
        return _compiling.victim(cls)


class PlaneState(NamedTuple):
    """State of a plane, for policies of garbage collection."""

    plane: int
    """Number of the plane: ((channel * chips + chip) * dies + die) * planes + plane."""
    free: int
    """Free blocks, including blocks that await erase."""
    closed: int
    """Closed blocks, from which garbage collection chooses victims."""
    invalid: int
    """Invalid mapping units in the closed blocks."""
    clock: int
    """Mapping units that the host has written so far."""
    rows: bytes
    """Closed blocks in binary form, decoded by :attr:`blocks`."""

    @property
    def blocks(self) -> npt.NDArray[np.void]:
        """Closed blocks as a structured array, with the columns of :class:`Blocks` except for ``order``.

        They are in the order of the victim policy. With ``gc.victim = "greedy"`` and ``"cost-benefit"``, blocks with
        fewer valid units come first.
        """
        forms = _forms()
        blocks: npt.NDArray[np.void] = forms.frombuffer(self.rows, forms.blocks)
        return blocks


class Trigger(Policy):
    """Decides when garbage collection runs in a plane (``gc.trigger``)."""

    path = "gc.trigger"

    @abstractmethod
    def wants(self, plane: PlaneState) -> bool:
        """Return True to start garbage collection in a plane now.

        Called after a block of the plane was opened and after each victim, possibly more than once. It is called only
        if the plane has at most ``gc.soft_threshold`` free blocks, but more than ``gc.hard_threshold`` and more than
        one. With more free blocks, garbage collection does not run; with fewer, it always does.

        Parameters
        ----------
        plane
            The plane.

        Returns
        -------
        bool
            True to start garbage collection.
        """

    def _wants(self, plane: _Plane) -> bool:
        return _truth("wants", self.wants(_state(plane)))


#: A plane as passed by the simulator: number, counts (free blocks, closed blocks, invalid units), clock, closed blocks.
_Plane = tuple[int, tuple[int, int, int], int, bytes]


def _state(plane: _Plane) -> PlaneState:
    number, counts, clock, blocks = plane
    return PlaneState(number, *counts, clock, blocks)


def _truth(method: str, value: object) -> bool:
    """Return a truth value. Anything else is an error, such as the None of a method without ``return``."""
    item = getattr(value, "item", None)
    plain = item() if callable(item) and getattr(value, "ndim", None) == 0 else value
    if not isinstance(plain, bool):
        raise TypeError(f"{method} must return True or False, not {value!r}")
    return plain


class Wear(Policy):
    """Levels wear (``gc.wear``).

    A policy overrides at least one of the methods. Other methods are not called.
    """

    path = "gc.wear"

    def pick_free(self, plane: PlaneState, free: npt.NDArray[np.void]) -> int:
        """Pick the free block that is opened next.

        Not called if planes must open blocks with equal addresses (``nand.advanced.strict``).

        Parameters
        ----------
        plane
            The plane.
        free
            The free blocks that have waited longest in the plane, oldest first, one to eight, as a structured array
            with the columns ``block`` (number in the device) and ``erases``.

        Returns
        -------
        int
            The position of the block in `free`.
        """
        raise NotImplementedError

    def allows(self, plane: PlaneState, block: np.void) -> bool:
        """Return True if garbage collection may take a victim.

        Otherwise the victim policy chooses again. If all victims are refused, garbage collection takes the first one.

        Parameters
        ----------
        plane
            The plane, without the victim.
        block
            The victim, with the columns of ``plane.blocks``.

        Returns
        -------
        bool
            True if garbage collection may take it.
        """
        raise NotImplementedError

    def erased(self, plane: PlaneState, block: np.void) -> int | None:
        """Choose a closed block to migrate after a block was erased.

        Garbage collection takes it as its next victim. The method is not called for a block that was migrated.

        Parameters
        ----------
        plane
            The plane.
        block
            The erased block, with the columns of ``plane.blocks``.

        Returns
        -------
        int or None
            The number of a closed block of the plane in the device. None migrates none.
        """
        raise NotImplementedError

    def _does(self) -> tuple[bool, bool, bool]:
        own = type(self)
        return own.pick_free is not Wear.pick_free, own.allows is not Wear.allows, own.erased is not Wear.erased

    def _pick_free(self, plane: _Plane, free: bytes) -> int:
        forms = _forms()
        return operator.index(self.pick_free(_state(plane), forms.frombuffer(free, forms.free)))

    def _allows(self, plane: _Plane, block: bytes) -> bool:
        forms = _forms()
        return _truth("allows", self.allows(_state(plane), forms.frombuffer(block, forms.blocks)[0]))

    def _erased(self, plane: _Plane, block: bytes) -> int | None:
        forms = _forms()
        chosen = self.erased(_state(plane), forms.frombuffer(block, forms.blocks)[0])
        if chosen is None:
            return None
        number = operator.index(chosen)
        if not 0 <= number < _NO_BLOCK:
            raise ValueError(f"chose block {number} to migrate, which is not a closed block of the plane")
        return number


#: More blocks than any device has.
_NO_BLOCK = 1 << 32


class HostWrite(NamedTuple):
    """A mapping unit written by the host."""

    lpn: int
    """Logical page number."""
    sectors: int
    """Number of 512-byte sectors of the request, or of the unit itself if the buffer writes it back."""
    stream: int
    """Stream of the workload, or 0 if the buffer writes the unit back."""
    placement: int
    """Placement hint of the request, or 0 if the buffer writes the unit back."""
    again: bool
    """True if the unit was written before, and not trimmed since."""
    clock: int
    """Mapping units written by the host before this one."""


class Classifier(Policy):
    """Classifies data by temperature, so that hot and cold data are in different blocks (``temperature``)."""

    path = "temperature"
    classes: ClassVar[int] = 2
    """Number of classes, from 2 to 4. Each class takes an open block of every plane."""

    @abstractmethod
    def classify(self, write: HostWrite) -> int:
        """Return the class of a unit.

        Called once for each unit written, also in preconditioning, before the unit has a physical address.

        Parameters
        ----------
        write
            The unit and its request.

        Returns
        -------
        int
            The class, from 0 for the coldest data to ``classes - 1``.
        """

    def _classify(self, *write: Any) -> int:  # noqa: ANN401 (the fields of a HostWrite)
        return operator.index(self.classify(HostWrite(*write)))


class Allocation(Policy):
    """Chooses the plane of a host write among the idle planes (``allocation``)."""

    path = "allocation"
    _is_static: ClassVar[bool] = False

    @abstractmethod
    def choose(self, planes: npt.NDArray[np.uint32]) -> int:
        """Choose a plane.

        Called for each page or wordline written. The device alternates between the planes of a die by itself. Therefore
        the choice selects the die, except in preconditioning.

        Parameters
        ----------
        planes
            Numbers of idle planes with free space, one or more, in ascending order:
            ((channel * chips + chip) * dies + die) * planes + plane. The array is valid during the call.

        Returns
        -------
        int
            The position of the chosen plane in `planes`.
        """

    @classmethod
    def _address(cls) -> int | None:
        return _compiling.allocation(cls)


class StaticAllocation(Policy):
    """Fixes the plane of each address (``allocation``)."""

    path = "allocation"
    _is_static: ClassVar[bool] = True

    @abstractmethod
    def planes(self, pages: npt.NDArray[np.uint32]) -> npt.ArrayLike:
        """Return the planes of all pages.

        Called once, when the device is created. Therefore a run is as fast as with a built-in allocation. The table
        takes 4 bytes of memory per page.

        Parameters
        ----------
        pages
            Page numbers of the host's address space, in units of flash pages: 0, 1, 2, ...

        Returns
        -------
        array_like of int
            The plane of each page: ((channel * chips + chip) * dies + die) * planes + plane. No plane may have more
            pages than it can hold.
        """

    def _table(self, pages: int) -> bytes:
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        planes = np.asarray(self.planes(np.arange(pages, dtype=np.uint32)))
        if planes.dtype.kind not in "iu":
            raise TypeError(f"the planes of pages must be integers, not {planes.dtype}")
        if planes.ndim != 1:
            raise ValueError(f"the planes of pages must have one dimension, not {planes.ndim}")
        # Invalid plane numbers stay invalid, so that the simulator reports them.
        planes = np.where((planes < 0) | (planes > _NO_PLANE), _NO_PLANE, planes)
        return planes.astype(np.uint32).tobytes()


#: More planes than any device has.
_NO_PLANE = (1 << 32) - 1


class Eviction(Policy):
    """Chooses the units to evict when the buffer needs space (``buffer.eviction``).

    The policy identifies a unit by the number of its entry, from its insertion until it is chosen or removed. A policy
    overrides the ``on_`` methods for the changes that it needs; only those are called. Alternatively, it overrides none
    of them, and reads :attr:`units` when it chooses.
    """

    path = "buffer.eviction"
    _units: _floatgate.Units

    def on_insert(self, entry: int, lpn: int, dirty: bool, read: bool) -> None:
        """Handle the insertion of a unit.

        Parameters
        ----------
        entry
            Number of its entry.
        lpn
            Logical page number.
        dirty
            True if it is dirty.
        read
            True if a read inserted it.
        """

    def on_access(self, entry: int, write: bool, dirty: bool) -> None:
        """Handle another read or write of a unit, after which it is dirty or not."""

    def on_clean(self, entry: int) -> None:
        """Handle a dirty unit that was written back and stays in the buffer."""

    def on_remove(self, entry: int) -> None:
        """Handle the removal of a unit that was not chosen."""

    @abstractmethod
    def choose(self) -> int | Iterable[int]:
        """Choose units to evict.

        Returns
        -------
        int or iterable of int
            One or several entries that hold a unit. These are evicted.
        """

    @property
    def units(self) -> npt.NDArray[np.void]:
        """Units in the buffer, by entry, as a structured array.

        Its columns are ``entry``, ``lpn``, ``dirty``, ``inserted``, ``used`` and ``written``. The last three are the
        numbers of the changes at which a unit was inserted, last read or written, and last written (0 for never). The
        array is built on each access, and takes 40 bytes per unit.
        """
        forms = _forms()
        units: npt.NDArray[np.void] = forms.frombuffer(self._units.rows(), forms.units)
        return units

    def _hooks(self) -> tuple[bool, ...]:
        names = ("on_insert", "on_access", "on_clean", "on_remove")
        return tuple(getattr(type(self), name) is not getattr(Eviction, name) for name in names)

    def _choose(self) -> list[int]:
        chosen = self.choose()
        if not isinstance(chosen, Iterable):
            return [operator.index(chosen)]
        # The iterable may be endless.
        most = self._units.entries()
        entries = [operator.index(entry) for entry in itertools.islice(chosen, most + 1)]
        if len(entries) > most:
            raise ValueError(f"chose more than the {most} entries of the buffer")
        return entries


class OperationClass(enum.IntEnum):
    """Purpose of a flash operation, as far as schedulers distinguish it."""

    HOST_READ = 0
    """A read that a host read waits for."""
    RMW_READ = 1
    """A read that a partial host write waits for."""
    HOST_PROGRAM = 2
    """A program of host data."""
    GC = 3
    """A read, program or erase of garbage collection."""
    URGENT_GC = 4
    """A read, program or erase of garbage collection in a plane with ``gc.hard_threshold`` free blocks or fewer."""
    SUMMARY = 5
    """A program of a summary page, the last page of a block."""
    MAP_READ = 6
    """A read of a translation page."""
    MAP_PROGRAM = 7
    """A program of a translation page."""
    BACKGROUND_GC = 8
    """A read, program or erase of garbage collection for a victim that was chosen in idle time (``gc.background``)."""
    READ_AHEAD = 9
    """A read of units that the host has not requested yet (``buffer.read_ahead``)."""


class Queue:
    """Operations that wait for a LUN, in order of arrival: read-only NumPy arrays, which are valid during the call.

    ``queue["rank"]`` is the same as ``queue.rank``. The column ``class`` is the attribute ``class_``.
    """

    __slots__ = ("class_", "lun", "plane", "rank", "request", "since", "stream")

    class_: npt.NDArray[np.uint8]
    """Class: an :class:`OperationClass`."""
    rank: npt.NDArray[np.uint8]
    """Rank of the class."""
    since: npt.NDArray[np.int64]
    """Time at which the operation was queued, in picoseconds."""
    lun: npt.NDArray[np.uint32]
    """Number of the LUN."""
    plane: npt.NDArray[np.int32]
    """Plane, or -1 for a write that any plane of the LUN may take."""
    request: npt.NDArray[np.int64]
    """Number of the request that waits for the operation, or -1."""
    stream: npt.NDArray[np.int32]
    """Stream of this request, or -1."""

    def __init__(  # noqa: PLR0917 (the columns)
        self,
        class_: npt.NDArray[np.uint8],
        rank: npt.NDArray[np.uint8],
        since: npt.NDArray[np.int64],
        lun: npt.NDArray[np.uint32],
        plane: npt.NDArray[np.int32],
        request: npt.NDArray[np.int64],
        stream: npt.NDArray[np.int32],
    ) -> None:
        self.class_, self.rank, self.since, self.lun = class_, rank, since, lun
        self.plane, self.request, self.stream = plane, request, stream

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        return _column(self, column)

    def __len__(self) -> int:
        return len(self.rank)


class Scheduler(Policy):
    """Chooses the operation that a LUN starts next (``scheduler``).

    A LUN is a group of planes that takes commands by itself: a plane, a die or a chip (``nand.concurrency``). Each
    class of operations has a rank. If several LUNs wait for a channel, the ranks decide. They also decide within a LUN,
    unless the policy has a method :meth:`pick`.
    """

    path = "scheduler"
    reconsiders: ClassVar[bool] = False
    """True if a LUN that waits for its channel may start a newly arrived operation with a lower rank instead."""

    @abstractmethod
    def rank(self, cls: OperationClass) -> int:
        """Return the rank of a class of operations.

        Called once for each class, when the device is created.

        Parameters
        ----------
        cls
            The class.

        Returns
        -------
        int
            The rank, from 0 (first) to 3.
        """

    def pick(self, queue: Queue, now: int) -> int | None:
        """Choose the operation that a LUN starts.

        Called when a LUN could start an operation and at least two wait. If the LUN has to wait for its channel, the
        method is called again when the channel is granted, with the operations of the same rank. Therefore one
        operation may take several calls. The device decides what joins the command, such as other writes of the same
        page.

        Parameters
        ----------
        queue
            The waiting operations, in order of arrival.
        now
            The time, in picoseconds.

        Returns
        -------
        int or None
            The position of the operation in `queue`. None leaves the choice to the ranks: the lowest one, and within it
            the operation that arrived first.
        """
        raise NotImplementedError

    def _picks(self) -> tuple[bool, bool]:
        return type(self).pick is not Scheduler.pick, bool(self.reconsiders)

    def _rank(self, number: int) -> int:
        return operator.index(self.rank(OperationClass(number)))

    @classmethod
    def _address(cls) -> int | None:
        return _compiling.scheduler(cls)


class Mapping(Policy):
    """Finds the address of a logical unit, decides where writes go, and reclaims space (``mapping.scheme``).

    It has the methods of the trait ``Mapping`` in Rust, all of which a scheme has to define. :class:`WholeMap` and
    :class:`Unsaved` define those that most schemes do not need. A scheme *keeps* all blocks of data: it opens them with
    ``cx.ftl.blocks.open_logical``, decides where units go in them, and has them erased. Functional mode and the
    recovery from a power cut use the same methods.

    Logical units (``lpn``), physical units (``ppn``), blocks, planes and operations (``id``) are numbers, counted from
    0 in the device. The context ``cx`` and the ``ftl`` are valid during the call: a later use raises
    :class:`RuntimeError`.
    """

    path = "mapping.scheme"

    @abstractmethod
    def look_up(self, cx: Context, lpn: int, what: LookUp) -> bool:
        """Look up the map entry of a unit. Called only if the map is in flash.

        Parameters
        ----------
        cx
            The device.
        lpn
            The unit.
        what
            The reason. ``LookUp.Await`` has an operation wait.

        Returns
        -------
        bool
            True if the controller has the entry.
        """

    @abstractmethod
    def changed(self, cx: Context, lpn: int, change: Change) -> None:
        """Note a change of the location of a unit. A scheme with a whole map sees ``Change.Trimmed`` only."""

    @abstractmethod
    def place(self, cx: Context, id: int) -> None:
        """Have a host write, which has all its data, wait for its address.

        The scheme sets its plane (``cx.ops[id].plane``), and queues it now or later with ``cx.enqueue(id)``.

        Parameters
        ----------
        cx
            The device.
        id
            The write. Its unit is ``cx.ops[id].lpn``.
        """

    @abstractmethod
    def target(self, ftl: Ftl, of: Program) -> Target:
        """Return where a program would go now. Must not change anything.

        Parameters
        ----------
        ftl
            The FTL, which this method cannot change.
        of
            A write of a unit, or copies by the number of their operation.

        Returns
        -------
        Target
            The plane, which is fixed for a unit, and ``Place.At`` or ``Place.Unknown``.
        """

    @abstractmethod
    def bind(self, cx: Context, id: int) -> Bound | None:
        """Bind a program to its address, because its plane is ready for it.

        A program fills ``cx.ftl.shape.units_per_program`` units. Its host writes are bound with ``cx.bind`` and linked
        by ``cx.ops[id].next``, and its copies with ``Gather.bind_from``. Units without data have the owner ``PADDING``.
        ``cx.ftl.note_program`` counts it.

        Parameters
        ----------
        cx
            The device.
        id
            A host write (``Kind.Write``) or copies (``Kind.MergeWrite``).

        Returns
        -------
        Bound or None
            The program. None if there is nothing to program.
        """

    @abstractmethod
    def ended(self, cx: Context, end: Ended) -> bool:
        """Continue after the end of an operation.

        Parameters
        ----------
        cx
            The device.
        end
            The operation.

        Returns
        -------
        bool
            False if a program has failed, and no block can take the place of its block.
        """

    @abstractmethod
    def step(self, cx: Context, step: Step) -> None:
        """Take a step: one that the scheme has pushed to ``cx.tasks``, or one that the device asks for."""

    @abstractmethod
    def make_room(self, cx: Context, plane: int, freed: bool) -> None:
        """Free blocks of translation pages in a plane. Called only if the map is in flash."""

    @abstractmethod
    def can_go_on(self, ftl: Ftl, plane: int, hand: InHand) -> bool:
        """Return True if a plane can continue with the blocks that have not failed. Called only if blocks may fail."""

    @abstractmethod
    def recover(self, found: Recovering) -> None:
        """Take over the blocks that a recovery has found, in a new scheme. :func:`keep_found` does most of it."""

    @abstractmethod
    def save(self, out: object) -> None:
        """Write the state to a file. Not called: states of devices with policies in Python cannot be saved."""

    @abstractmethod
    def load(self, ftl: Ftl, input: object, written: object) -> None:
        """Read what :meth:`save` wrote. Not called."""

    @abstractmethod
    def recount(self, ftl: Ftl) -> None:
        """Check the state against a count from scratch, for tests. An exception describes the difference."""

    @abstractmethod
    def blocks(self, ftl: Ftl) -> Iterable[KeptBlock]:
        """Return the kept blocks of data.

        Returns
        -------
        iterable of KeptBlock
            Each block with the number of its units that were programmed or bound.
        """

    @abstractmethod
    def report(self, ftl: Ftl) -> SchemeReport:
        """Return the figures of the scheme."""


class WholeMap:
    """Methods of a mapping scheme whose controller has the whole map. Name it before :class:`Mapping`."""

    def look_up(self, cx: Context, lpn: int, what: LookUp) -> bool:  # noqa: ARG002 (the interface)
        """Return True: the controller has all entries."""
        return True

    def make_room(self, cx: Context, plane: int, freed: bool) -> None:
        """Do nothing: there are no translation pages."""

    def can_go_on(self, ftl: Ftl, plane: int, hand: InHand) -> bool:  # noqa: ARG002 (the interface)
        """Return True: there are no blocks of translation pages."""
        return True


class Unsaved:
    """Methods of a mapping scheme for saved states, which are not supported. Name it before :class:`Mapping`."""

    def save(self, out: object) -> None:
        """Do nothing: the method is not called."""

    def load(self, ftl: Ftl, input: object, written: object) -> None:
        """Do nothing: the method is not called."""


def give_up(cx: Context, block: int, purpose: Purpose) -> None:
    """Have a kept block without valid units erased, once nothing depends on it.

    Parameters
    ----------
    cx
        The context of a mapping scheme.
    block
        The block.
    purpose
        The reason, for observers.
    """
    cx.ftl.blocks.await_erase_for(block, purpose)
    if cx.ftl.blocks.can_erase(block):
        cx.erase(block)


def keep_found(
    recovery: Recovering, merge_of: Callable[[Ftl, list[FoundBlock]], FoundMerge | None]
) -> list[FoundBlock]:
    """Have a mapping scheme keep the blocks of a recovery.

    Parameters
    ----------
    recovery
        The recovery.
    merge_of
        Function of the FTL and the blocks, which returns a merge that must be done first, or None.

    Returns
    -------
    list of FoundBlock
        The blocks.
    """
    while merge := merge_of(recovery.ftl, recovery.found()):
        if not recovery.merge(merge):
            break
    return recovery.keep()


def check(device: Device) -> None:
    """Check the policies in Python of a device against the laws of their families, in a test.

    A mapping scheme must lose no data when it writes, trims and reads at random, with and without time, and when the
    power is cut. Other policies must choose only what exists. All must give the same results in two runs.

    Parameters
    ----------
    device
        A small device, such as ``tiny`` with 16 blocks per plane, because the checks write it several times.

    Raises
    ------
    PolicyError
        A policy breaks a law, or raised an exception.

    Examples
    --------
    >>> class Fewest(fg.policies.Victim):
    ...     def choose(self, plane, blocks, clock):
    ...         return blocks.valid.argmin()
    >>> fg.policies.check(fg.Device("tiny", {"geometry.blocks": 16, "capacity.spare": 0.5, "gc.victim": Fewest}))
    """
    _floatgate.check_policies(device._handle)


class _Forms(NamedTuple):
    """``numpy.frombuffer``, and the data types of rows, which match those in crates/py/src/policies.rs."""

    frombuffer: Any
    blocks: Any
    units: Any
    free: Any


@functools.cache
def _forms() -> _Forms:
    import numpy as np  # noqa: PLC0415 (not needed to import the package)

    blocks = {"closed": "u8", "changed": "u8", "block": "u4", "valid": "u4", "erases": "u4"}
    units = {"inserted": "u8", "used": "u8", "written": "u8", "entry": "u4", "lpn": "u4", "dirty": "?"}
    free = _form(np, {"block": "u4", "erases": "u4"}, 8)
    return _Forms(np.frombuffer, _form(np, blocks, 32), _form(np, units, 40), free)


def _form(np: Any, columns: dict[str, str], size: int) -> Any:  # noqa: ANN401 (a module that is loaded late)
    formats = [np.dtype(form) for form in columns.values()]
    offsets = [sum(form.itemsize for form in formats[:column]) for column in range(len(formats))]
    return np.dtype({"names": list(columns), "formats": formats, "offsets": offsets, "itemsize": size})


def __dir__() -> list[str]:
    """List the public names."""
    return __all__


PolicyType = TypeVar("PolicyType", bound=type[Policy])

#: Policies by the path of their family and their name.
_REGISTERED: dict[tuple[str, str], type[Policy]] = {}


def register(name: str) -> Callable[[PolicyType], PolicyType]:
    """Register a policy, as a decorator of its class.

    Parameters
    ----------
    name
        Name of the policy. Replaces another class with this name; existing devices keep theirs.

    Returns
    -------
    callable
        A decorator that returns the class.

    Raises
    ------
    OptionError
        The class is not a policy, lacks a method, or has the name of a built-in policy.

    Examples
    --------
    >>> @fg.policies.register("oldest")
    ... class Oldest(fg.policies.Victim):
    ...     def choose(self, plane, blocks, clock):
    ...         return blocks["closed"].argmin()
    >>> fg.Device("tiny", {"gc.victim": "oldest"}).policies
    {'gc.victim': <class '...Oldest'>}
    """

    def keep(policy: PolicyType) -> PolicyType:
        _check(policy, name)
        policy.name = name
        _source(policy)
        _REGISTERED[policy.path, name] = policy
        return policy

    return keep


def registered() -> dict[str, list[str]]:
    """List the registered policies.

    Returns
    -------
    dict
        The names, by the key of the family.
    """
    names: dict[str, list[str]] = {}
    for path, name in sorted(_REGISTERED):
        names.setdefault(path, []).append(name)
    return names


def _with_names(error: ConfigError) -> ConfigError:
    """Add the registered names to an error about a policy's name."""
    names = registered()
    paths = [problem.path for problem in error.problems if "unknown name" in problem.message and problem.path in names]
    if not paths:
        return error
    lines = [f"registered in Python for {path}: {', '.join(names[path])}" for path in paths]
    more = ConfigError("\n".join([error.said, *lines]))
    more.problems = error.problems
    return more


def _check(policy: object, name: str) -> None:
    """Reject objects that are not policies."""
    if not (isinstance(policy, type) and issubclass(policy, Policy) and policy.path):
        raise OptionError(
            f"{policy!r} is not a policy: it must be a subclass of floatgate.policies.Victim, Trigger, Wear, "
            "Allocation, StaticAllocation, Classifier, Eviction, Scheduler or Mapping"
        )
    if lacks := ", ".join(sorted(policy.__abstractmethods__)):
        count = "method" if len(policy.__abstractmethods__) == 1 else "methods"
        raise OptionError(f"the policy {policy.__name__} lacks the {count} {lacks}")
    if not isinstance(name, str) or not name:
        raise OptionError(f"the name of a policy must be a text, not {name!r}")
    if name in (*_floatgate.policy_names(policy.path), "external"):
        raise OptionError(f"`{name}` is a built-in policy of {policy.path}; use another name")


def _source(policy: type[Policy]) -> str:
    """Return the digest of the source of a policy's class and its base classes."""
    known: str | None = vars(policy).get("_source_digest")
    if known is None:
        digest = hashlib.sha256()
        for one in policy.__mro__:
            if issubclass(one, Policy) and one.__module__ != __name__:
                digest.update(_text(one).encode())
        # Stored in the class, because another process may receive the class without its source.
        known = policy._source_digest = digest.hexdigest()[:32]  # type: ignore[attr-defined]
    return known


def _text(policy: type[Policy]) -> str:
    """Return the source of a class, or its compiled code if there is no source, as for one typed at a prompt."""
    try:
        return inspect.getsource(policy)
    except (OSError, TypeError):
        parts = vars(policy).items()
        return "\n".join(f"{name}={_compiled(part)}" for name, part in parts if not _is_about(name))


def _is_about(name: str) -> bool:
    """Return True if Python or this module created a part of a class."""
    return name in ("__module__", "__doc__", "__dict__", "__weakref__", "name", "_abc_impl", "__firstlineno__") or (
        name in ("__abstractmethods__", "__parameters__", "__static_attributes__", "__annotations__", "__qualname__")
    )


def _compiled(part: object) -> str:
    part = getattr(part, "__func__", part)
    part = getattr(part, "py_func", part)
    code = getattr(part, "__code__", part)
    if isinstance(code, CodeType):
        constants = [_compiled(constant) for constant in code.co_consts]
        return f"{code.co_code.hex()} {constants} {code.co_names} {getattr(part, '__defaults__', None)}"
    return repr(part)


def _of(path: str, called: object) -> type[Policy] | None:
    """Return the policy of a family with this name or class, or None if it is not a policy in Python."""
    if isinstance(called, type) and issubclass(called, Policy):
        name = vars(called).get("name") or called.__name__
        _check(called, name)
        called.name = name
        if called.path != path:
            raise OptionError(f"{called.__name__} is a policy for {called.path}, not for {path}")
        return called
    return _REGISTERED.get((path, called)) if isinstance(called, str) else None


def _resolve(options: Table[Any, Any]) -> tuple[dict[Any, Any], dict[str, type[Policy]]]:
    """Convert policies in Python to the syntax of device files. Return the options and the policies."""
    plain: dict[Any, Any] = {}
    found: dict[str, type[Policy]] = {}
    for path, value in options.items():
        called: Any = value
        given: Table[str, Any] = {}
        if isinstance(value, Table) and len(value) == 1:
            ((called, given),) = value.items()
        policy = _of(path, called)
        if policy is None:
            plain[path] = value
            continue
        _check_options(policy, given)
        found[path] = policy
        external: dict[str, Any] = {"name": policy.name, "source": _source(policy)}
        if given:
            external["options"] = dict(given)
        if issubclass(policy, Classifier):
            external["classes"] = policy.classes
        plain[path] = {"external": external}
    return plain, found


def _check_options(policy: type[Policy], options: Table[str, Any]) -> None:
    takes = inspect.signature(policy)
    try:
        takes.bind(**options)
    except TypeError as error:
        raise ConfigError(f"the policy `{policy.name}` takes the options {takes}: {error}") from error


def _bound(options: Table[str, Any]) -> dict[str, Any]:
    """Replace names of policies by their classes, for another process, where they are not registered."""

    def bind(path: str, value: Any) -> Any:  # noqa: ANN401 (a figure of the device)
        if isinstance(value, Table) and len(value) == 1:
            ((called, given),) = value.items()
            return {policy: given} if (policy := _of(path, called)) else value
        return _of(path, value) or value

    return {path: bind(path, value) for path, value in options.items()}


def _find(path: str, name: str, source: str, known: Table[str, type[Policy]]) -> type[Policy]:
    """Return the policy that a device names, or raise an error if it is not registered or has changed."""
    policy = known.get(path)
    if policy is None or policy.name != name:
        policy = _REGISTERED.get((path, name))
    if policy is None:
        names = ", ".join(registered().get(path, [])) or "none"
        raise ConfigError(
            f"{path}: no policy in Python is registered as `{name}` (registered for {path}: {names}); import the "
            "module that registers it, or give its class"
        )
    if source not in ("", _source(policy)):
        raise ConfigError(
            f"{path}: the policy `{name}` has changed: its source has digest {_source(policy)}, but the device was "
            f"created with digest {source}; to use the present source, remove {path}.external.source"
        )
    return policy


#: Registered policies for a command: a function that returns a factory, and each path, name and digest.
_OfCommand = tuple[Callable[[str, str, str, str], object], list[tuple[str, str, str]]]
#: Factory of a policy for a device. It takes the options as JSON, the seed, and the shape of the device.
_Maker = Callable[[str, int, Shape], object]


def _of_command() -> _OfCommand:
    """Return the registered policies for a command, with the function that finds them."""

    def find(path: str, name: str, source: str, config: str) -> _Maker:
        return _maker(_find(path, name, source, {}), json.loads(config))

    return find, [(*named, _source(_REGISTERED[named])) for named in sorted(_REGISTERED)]


def _import(file: str) -> None:
    """Import a file or a module that registers policies."""
    before = dict(_REGISTERED)
    try:
        if file.endswith(".py"):
            name = Path(file).stem
            spec = importlib.util.spec_from_file_location(name, file)
            if spec is None or spec.loader is None:
                raise ImportError(f"{file} is not a Python file")
            module = importlib.util.module_from_spec(spec)
            # The source of a class is found by its module.
            sys.modules[name] = module
            spec.loader.exec_module(module)
        else:
            importlib.import_module(file)
    except Exception as error:
        raise OptionError(f"cannot import the policies of {file}: {type(error).__name__}: {error}") from error
    if before == _REGISTERED:
        raise OptionError(f"{file} registers no policy; put @fg.policies.register(NAME) above a class in it")


def _maker(policy: type[Policy], config: Table[str, Any]) -> _Maker:
    """Return a factory of the policy for a device."""

    def make(options: str, seed: int, shape: Shape) -> Policy:
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        made = policy.__new__(policy)
        made.device, made.shape = config, shape
        words = hashlib.sha256(f"{policy.path} {policy.name}".encode()).digest()[:8]
        made.rng = np.random.default_rng([seed, int.from_bytes(words, "little")])
        policy.__init__(made, **json.loads(options))
        return made

    return make
