"""Policies of your own, in Python.

A policy is a subclass of one of the classes here. It is registered by a name, which devices then have like that of a
built-in one::

    import floatgate as fg

    @fg.policies.register("coldest")
    class Coldest(fg.policies.Victim):
        def choose(self, plane, blocks, clock):
            return blocks["changed"].argmin()

    device = fg.Device("tiny").with_options({"gc.victim": "coldest"})

What a policy sees are read-only arrays of NumPy, which stay as they are when the simulation goes on. What it raises
ends the run with :class:`floatgate.PolicyError`, whose cause is that exception with its own traceback; so does an
answer that cannot be. A policy has random numbers of its own, ``self.rng``, which the seed of the run decides. Device
and results carry the digest of its source, so that results of different sources are told apart.

A simulator that is forked, or run from, copies its policies: :meth:`Policy.fork`.
"""

from __future__ import annotations

import copy
import enum
import functools
import hashlib
import inspect
import json
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from floatgate import _floatgate
from floatgate.exceptions import ConfigError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "Allocation",
    "Classifier",
    "Eviction",
    "HostWrite",
    "OperationClass",
    "PlaneState",
    "Policy",
    "Scheduler",
    "StaticAllocation",
    "Trigger",
    "Victim",
    "Wear",
    "register",
    "registered",
]


class Policy(ABC):
    """What policies of all families have.

    A subclass may have an ``__init__``, whose keyword parameters are the policy's options; a device gives them as
    ``{"gc.victim": {"coldest": {"weight": 2}}}``. There is one policy for each device that is made, and two victim
    policies where a device keeps its map in flash.
    """

    path: ClassVar[str] = ""
    """The key of the device that names a policy of this family."""
    name: ClassVar[str] = ""
    """What the policy is registered as."""
    device: Mapping[str, Any]
    """All figures of the device, as ``Device.config`` has them."""
    rng: np.random.Generator
    """Random numbers that follow from the seed of the run, the family and the name."""

    def fork(self) -> Policy:
        """Make another policy with the same state and the same future, for a copy of the device.

        Returns
        -------
        Policy
            A deep copy, random numbers included. A policy that shares something on purpose, or holds what cannot be
            copied, such as an open file, has its own.
        """
        # What the simulator gave is not copied: the device's figures do not change.
        given = {id(value): value for value in (self.device, vars(self).get("_units"))}
        return copy.deepcopy(self, given)


class Victim(Policy):
    """Chooses the block of a plane that cleaning reclaims next (``gc.victim``)."""

    path = "gc.victim"

    @abstractmethod
    def choose(self, plane: int, blocks: npt.NDArray[np.void], clock: int) -> int:
        """Choose a victim.

        It is called once for each block that is reclaimed, when there is something to gain in the plane.

        Parameters
        ----------
        plane
            The plane: ((channel * chips + chip) * dies + die) * planes + plane.
        blocks
            The closed blocks of the plane, one or more, as a structured array with the columns ``valid`` (valid mapping
            units), ``erases``, ``closed`` and ``changed`` (the clock when the block was full, and when one of its units
            was last superseded or trimmed, or it was closed), ``block`` (its number in the device). Blocks with fewer
            valid units come first; of equally many, the one that has had so few for the longest time.
        clock
            Mapping units that the host has written so far.

        Returns
        -------
        int
            The position of the victim in `blocks`.
        """

    def _choose(self, plane: int, blocks: bytes, clock: int) -> int:
        forms = _forms()
        return operator.index(self.choose(plane, forms.frombuffer(blocks, forms.blocks), clock))


class PlaneState(NamedTuple):
    """A plane that could be cleaned."""

    plane: int
    """Its number: ((channel * chips + chip) * dies + die) * planes + plane."""
    stock: int
    """Free blocks, and those that only have to be erased."""
    closed: int
    """Closed blocks: those that cleaning chooses from."""
    stale: int
    """Invalidated or trimmed mapping units in them."""
    clock: int
    """Mapping units that the host has written so far."""
    rows: bytes
    """The closed blocks, as :attr:`blocks` reads them."""

    @property
    def blocks(self) -> npt.NDArray[np.void]:
        """The closed blocks as a structured array, with the columns that victim policies see.

        They are in the order of the victim policy. With ``gc.victim = "greedy"`` and ``"cost-benefit"``, blocks with
        fewer valid units come first.
        """
        forms = _forms()
        blocks: npt.NDArray[np.void] = forms.frombuffer(self.rows, forms.blocks)
        return blocks


class Trigger(Policy):
    """Says when a plane is cleaned (``gc.trigger``)."""

    path = "gc.trigger"

    @abstractmethod
    def wants(self, plane: PlaneState) -> bool:
        """Say whether to clean a plane now.

        It is called when a block of the plane has been opened and behind each victim, and may be called more than once,
        while the plane has at most ``gc.soft_threshold`` free blocks and more than ``gc.hard_threshold`` and than one.
        Above, a plane is not cleaned; below, it is.

        Parameters
        ----------
        plane
            The plane.

        Returns
        -------
        bool
            Whether to clean it.
        """

    def _wants(self, plane: _Plane) -> bool:
        return bool(self.wants(_state(plane)))


#: A plane as the simulator gives it: its number, free blocks, closed blocks and stale units, clock and closed blocks.
_Plane = tuple[int, tuple[int, int, int], int, bytes]


def _state(plane: _Plane) -> PlaneState:
    number, counts, clock, blocks = plane
    return PlaneState(number, *counts, clock, blocks)


class Wear(Policy):
    """Levels wear (``gc.wear``).

    A policy has one of the methods or more. Those that it does not have are not called.
    """

    path = "gc.wear"

    def pick_free(self, plane: PlaneState, free: npt.NDArray[np.void]) -> int:
        """Pick the free block that is opened next.

        If planes open blocks of equal addresses (``nand.advanced.strict``), these addresses decide instead.

        Parameters
        ----------
        plane
            The plane.
        free
            The free blocks of the plane that have waited the longest, the oldest first, one to eight, as a structured
            array with the columns ``block`` (its number in the device) and ``erases``.

        Returns
        -------
        int
            The position of the block in `free`.
        """
        raise NotImplementedError

    def allows(self, plane: PlaneState, block: np.void) -> bool:
        """Say whether garbage collection may take a victim.

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
            Whether garbage collection may take it.
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
        return bool(self.allows(_state(plane), forms.frombuffer(block, forms.blocks)[0]))

    def _erased(self, plane: _Plane, block: bytes) -> int | None:
        forms = _forms()
        chosen = self.erased(_state(plane), forms.frombuffer(block, forms.blocks)[0])
        return None if chosen is None else operator.index(chosen)


class HostWrite(NamedTuple):
    """A mapping unit that the host writes."""

    lpn: int
    """Its number in the host's address space."""
    sectors: int
    """Sectors of 512 bytes of the request that writes it, or of the unit's own that the buffer writes out."""
    stream: int
    """Stream of the workload, and 0 for what the buffer writes out."""
    placement: int
    """Placement hint of the request, and 0 for what the buffer writes out."""
    again: bool
    """Whether the unit was written before, and not trimmed since."""
    clock: int
    """Mapping units that the host has written before."""


class Classifier(Policy):
    """Tells hot data from cold, so that they are kept apart in flash (``temperature``)."""

    path = "temperature"
    classes: ClassVar[int] = 2
    """Classes that it tells apart, from 2 to 4: each takes an open block of every plane."""

    @abstractmethod
    def classify(self, write: HostWrite) -> int:
        """Tell the class of a unit.

        It is called once for each unit that is written, in preconditioning too, before the unit has a place.

        Parameters
        ----------
        write
            The unit, and the request that writes it.

        Returns
        -------
        int
            Its class: 0 for what stays longest, and below `classes`.
        """

    def _classify(self, *write: Any) -> int:  # noqa: ANN401 (the fields of a HostWrite)
        return operator.index(self.classify(HostWrite(*write)))


class Allocation(Policy):
    """Chooses the plane that a host write goes to, when one is idle (``allocation``)."""

    path = "allocation"
    _is_static: ClassVar[bool] = False

    @abstractmethod
    def choose(self, planes: npt.NDArray[np.uint32]) -> int:
        """Choose a plane.

        It is called for each page or wordline that is written. The planes of one die take turns by themselves, so that
        it is the die that is chosen, except in preconditioning.

        Parameters
        ----------
        planes
            The numbers, ascending, of the planes that are idle and have room, one or more:
            ((channel * chips + chip) * dies + die) * planes + plane.

        Returns
        -------
        int
            The position of the chosen one in `planes`.
        """

    def _choose(self, planes: bytes) -> int:
        forms = _forms()
        return operator.index(self.choose(forms.frombuffer(planes, forms.plane)))


class StaticAllocation(Policy):
    """Fixes the plane of each address (``allocation``)."""

    path = "allocation"
    _is_static: ClassVar[bool] = True

    @abstractmethod
    def planes(self, pages: npt.NDArray[np.uint32]) -> npt.ArrayLike:
        """Give the planes of all pages.

        It is called once, when the device is made, so a run is as fast as with a built-in allocation. The table takes 4
        bytes of memory for each page.

        Parameters
        ----------
        pages
            Numbers of flash pages' worth of the host's address space: 0, 1, 2, ...

        Returns
        -------
        array_like of int
            The plane of each: ((channel * chips + chip) * dies + die) * planes + plane. No plane may have more pages
            than it can hold.
        """

    def _table(self, pages: int) -> bytes:
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        planes = np.asarray(self.planes(np.arange(pages, dtype=np.uint32)))
        if planes.dtype.kind not in "iu":
            raise TypeError(f"the planes of pages are whole numbers, not {planes.dtype}")
        if planes.ndim != 1:
            raise ValueError(f"the planes of pages are an array of one dimension, not {planes.ndim}")
        # What is no number of a plane stays none: the simulator says so.
        planes = np.where((planes < 0) | (planes > _NO_PLANE), _NO_PLANE, planes)
        return planes.astype(np.uint32).tobytes()


#: More planes than any device has.
_NO_PLANE = (1 << 32) - 1


class Eviction(Policy):
    """Chooses what leaves the buffer when it needs room (``buffer.eviction``).

    A unit is told of by the number of its entry, from when it comes until it is chosen or removed. A policy overrides
    the methods for the changes that it wants to know; only those are called. Or it overrides none, and looks at
    :attr:`units` when it chooses.
    """

    path = "buffer.eviction"
    _units: _floatgate.Units

    def on_insert(self, entry: int, lpn: int, dirty: bool, read: bool) -> None:
        """Hear that a unit has come.

        Parameters
        ----------
        entry
            Its entry.
        lpn
            The mapping unit of the host's address space.
        dirty
            Whether flash does not have it.
        read
            Whether a read brought it.
        """

    def on_access(self, entry: int, write: bool, dirty: bool) -> None:
        """Hear that a unit was read or written again, which made it dirty or not."""

    def on_clean(self, entry: int) -> None:
        """Hear that a dirty unit is in flash now, and stays."""

    def on_remove(self, entry: int) -> None:
        """Hear that a unit has left without being chosen."""

    @abstractmethod
    def choose(self) -> int | Iterable[int]:
        """Choose what leaves.

        Returns
        -------
        int or iterable of int
            An entry, or several, that hold a unit. They are gone then.
        """

    @property
    def units(self) -> npt.NDArray[np.void]:
        """What is in the buffer, by entry, as a structured array.

        Its columns are ``entry``, ``lpn``, ``dirty``, ``inserted``, ``used`` and ``written``: the numbers of the
        changes at which a unit came, was last read or written, and was last written, 0 for never. It is made each time
        that it is asked for, of 40 bytes for each unit.
        """
        forms = _forms()
        units: npt.NDArray[np.void] = forms.frombuffer(self._units.rows(), forms.units)
        return units

    def _hooks(self) -> tuple[bool, ...]:
        names = ("on_insert", "on_access", "on_clean", "on_remove")
        return tuple(getattr(type(self), name) is not getattr(Eviction, name) for name in names)

    def _choose(self) -> list[int]:
        chosen = self.choose()
        return [operator.index(entry) for entry in (chosen if isinstance(chosen, Iterable) else (chosen,))]


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
    """The same while a plane has ``gc.hard_threshold`` free blocks or fewer."""
    SUMMARY = 5
    """A program of a summary page, the last page of a block."""
    MAP_READ = 6
    """A read of a translation page."""
    MAP_PROGRAM = 7
    """A program of a translation page."""


class Scheduler(Policy):
    """Chooses the operation that a LUN starts next (``scheduler``).

    A LUN is a group of planes that takes commands by itself: a plane, a die or a chip (``nand.concurrency``).
    Operations have a rank by their class. A channel that several LUNs wait for goes by the ranks. So does a LUN, unless
    the policy has a method :meth:`pick`.
    """

    path = "scheduler"
    reconsiders: ClassVar[bool] = False
    """Whether a LUN that waits for its channel starts an operation with a lower rank that arrives meanwhile."""

    @abstractmethod
    def rank(self, cls: OperationClass) -> int:
        """Rank a class of operations.

        It is called once for each class, when the device is made.

        Parameters
        ----------
        cls
            The class.

        Returns
        -------
        int
            Its rank, from 0, which goes first, to 3.
        """

    def pick(self, queue: npt.NDArray[np.void], now: int) -> int | None:
        """Choose what a LUN starts.

        It is called when a LUN could start an operation and at least two wait. If the LUN has to wait for its channel,
        it is called again when the channel is granted, with the operations of the same rank. So one operation may take
        several calls. What joins the command, such as other writes of the same page, is the choice of the device.

        Parameters
        ----------
        queue
            The operations that wait, in the order of arrival, as a structured array. Its columns are ``class`` (an
            :class:`OperationClass`), ``rank``, ``since`` (the time at which the operation was queued, in picoseconds),
            ``lun``, ``plane`` (-1 for a write that any plane of the LUN may take), and ``request`` and ``stream`` (the
            number of the request that waits for the operation, and its stream, or -1).
        now
            The time, in picoseconds.

        Returns
        -------
        int or None
            The position of the operation in `queue`. None leaves the choice to the ranks: the lowest one, and within it
            the operation that arrived first.
        """
        raise NotImplementedError

    def _looks(self) -> tuple[bool, bool]:
        return type(self).pick is not Scheduler.pick, bool(self.reconsiders)

    def _rank(self, number: int) -> int:
        return operator.index(self.rank(OperationClass(number)))

    def _pick(self, queue: bytes, now: int) -> int | None:
        forms = _forms()
        chosen = self.pick(forms.frombuffer(queue, forms.queue), now)
        return None if chosen is None else operator.index(chosen)


class _Forms(NamedTuple):
    """``numpy.frombuffer``, and the forms of rows. crates/py/src/policies.rs has the same forms."""

    frombuffer: Any
    blocks: Any
    units: Any
    plane: Any
    queue: Any
    free: Any


@functools.cache
def _forms() -> _Forms:
    import numpy as np  # noqa: PLC0415 (not needed to import the package)

    blocks = {"closed": "u8", "changed": "u8", "block": "u4", "valid": "u4", "erases": "u4"}
    units = {"inserted": "u8", "used": "u8", "written": "u8", "entry": "u4", "lpn": "u4", "dirty": "?"}
    queue = {"since": "u8", "request": "i8", "lun": "u4", "plane": "i4", "stream": "i4", "class": "u1", "rank": "u1"}
    free = _form(np, {"block": "u4", "erases": "u4"}, 8)
    return _Forms(
        np.frombuffer, _form(np, blocks, 32), _form(np, units, 40), np.dtype("u4"), _form(np, queue, 30), free
    )


def _form(np: Any, columns: dict[str, str], size: int) -> Any:  # noqa: ANN401 (a module that is loaded late)
    formats = [np.dtype(form) for form in columns.values()]
    offsets = [sum(form.itemsize for form in formats[:column]) for column in range(len(formats))]
    return np.dtype({"names": list(columns), "formats": formats, "offsets": offsets, "itemsize": size})


PolicyType = TypeVar("PolicyType", bound=type[Policy])

#: Policies by the path of their family and their name.
_REGISTERED: dict[tuple[str, str], type[Policy]] = {}


def register(name: str) -> Callable[[PolicyType], PolicyType]:
    """Register a policy, as a decorator of its class.

    Parameters
    ----------
    name
        What devices call it. Another class of this name is replaced; devices that were made with it keep it.

    Returns
    -------
    callable
        Takes the class, and gives it back.

    Raises
    ------
    OptionError
        The class is no policy, lacks a method, or is called like a built-in one.

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
    """List what is registered.

    Returns
    -------
    dict
        The names, by the key that names a policy of the family.
    """
    names: dict[str, list[str]] = {}
    for path, name in sorted(_REGISTERED):
        names.setdefault(path, []).append(name)
    return names


def _with_names(error: ConfigError) -> ConfigError:
    """Add what is registered to an error about a policy's name."""
    names = registered()
    paths = [problem.path for problem in error.problems if "unknown name" in problem.message and problem.path in names]
    if not paths:
        return error
    lines = [f"registered in Python for {path}: {', '.join(names[path])}" for path in paths]
    more = ConfigError("\n".join([str(error), *lines]))
    more.problems = error.problems
    return more


def _check(policy: object, name: str) -> None:
    """Refuse what is no policy."""
    if not (isinstance(policy, type) and issubclass(policy, Policy) and policy.path):
        raise OptionError(
            f"{policy!r} is no policy: it has to be a subclass of floatgate.policies.Victim, Trigger, Allocation, "
            "StaticAllocation, Classifier, Eviction or Scheduler"
        )
    if lacks := ", ".join(sorted(policy.__abstractmethods__)):
        raise OptionError(f"the policy {policy.__name__} lacks the method {lacks}")
    if not isinstance(name, str) or not name:
        raise OptionError(f"a policy is called by a text, not {name!r}")
    if name in (*_floatgate.policy_names(policy.path), "external"):
        raise OptionError(f"`{name}` is a built-in policy of {policy.path}: take another name")


def _source(policy: type[Policy]) -> str:
    """Name the source of a policy: of its class and of those that it is made of."""
    known: str | None = vars(policy).get("_source_digest")
    if known is None:
        digest = hashlib.sha256()
        for one in policy.__mro__:
            if issubclass(one, Policy) and one.__module__ != __name__:
                digest.update(_text(one).encode())
        # It goes along with a class that is sent to another process, which may have no source of it.
        known = policy._source_digest = digest.hexdigest()[:32]  # type: ignore[attr-defined]
    return known


def _text(policy: type[Policy]) -> str:
    """Give the source of a class; where there is none, as of one that is typed into a prompt, its compiled code."""
    try:
        return inspect.getsource(policy)
    except (OSError, TypeError):
        parts = vars(policy).items()
        return "\n".join(f"{name}={_compiled(part)}" for name, part in parts if not _is_about(name))


def _is_about(name: str) -> bool:
    """Whether a part of a class is what Python or this module has written down."""
    return name in ("__module__", "__doc__", "__dict__", "__weakref__", "name", "_abc_impl", "__firstlineno__") or (
        name in ("__abstractmethods__", "__parameters__", "__static_attributes__", "__annotations__", "__qualname__")
    )


def _compiled(part: object) -> str:
    code = getattr(part, "__code__", part)
    if isinstance(code, CodeType):
        constants = [_compiled(constant) for constant in code.co_consts]
        return f"{code.co_code.hex()} {constants} {code.co_names} {getattr(part, '__defaults__', None)}"
    return repr(part)


def _of(path: str, called: object) -> type[Policy] | None:
    """Give the policy of a family that is called so, if it is one in Python."""
    if isinstance(called, type) and issubclass(called, Policy):
        name = vars(called).get("name") or called.__name__
        _check(called, name)
        called.name = name
        if called.path != path:
            raise OptionError(f"{called.__name__} is a policy for {called.path}, not for {path}")
        return called
    return _REGISTERED.get((path, called)) if isinstance(called, str) else None


def _resolve(options: Mapping[Any, Any]) -> tuple[dict[Any, Any], dict[str, type[Policy]]]:
    """Write policies in Python as device files have them, and tell which they are."""
    plain: dict[Any, Any] = {}
    found: dict[str, type[Policy]] = {}
    for path, value in options.items():
        called: Any = value
        given: Mapping[str, Any] = {}
        if isinstance(value, Mapping) and len(value) == 1:
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


def _check_options(policy: type[Policy], options: Mapping[str, Any]) -> None:
    takes = inspect.signature(policy)
    try:
        takes.bind(**options)
    except TypeError as error:
        raise ConfigError(f"the policy `{policy.name}` takes the options {takes}: {error}") from error


def _bound(options: Mapping[str, Any]) -> dict[str, Any]:
    """Give options with classes in the place of their names, for another process, where they are not registered."""

    def bind(path: str, value: Any) -> Any:  # noqa: ANN401 (a figure of the device)
        if isinstance(value, Mapping) and len(value) == 1:
            ((called, given),) = value.items()
            return {policy: given} if (policy := _of(path, called)) else value
        return _of(path, value) or value

    return {path: bind(path, value) for path, value in options.items()}


def _find(path: str, name: str, source: str, known: Mapping[str, type[Policy]]) -> type[Policy]:
    """Give the policy that a device names, or say why there is none."""
    policy = known.get(path)
    if policy is None or policy.name != name:
        policy = _REGISTERED.get((path, name))
    if policy is None:
        names = ", ".join(registered().get(path, [])) or "none"
        raise ConfigError(
            f"{path}: no policy in Python is registered as `{name}` (registered for {path}: {names}): import the "
            "module that has it, or give its class"
        )
    if source not in ("", _source(policy)):
        raise ConfigError(
            f"{path}: the policy `{name}` has changed: its source has the digest {_source(policy)}, and the device was "
            f"made with that of {source}. Leave {path}.external.source out to take it as it is now"
        )
    return policy


def _maker(policy: type[Policy], config: Mapping[str, Any]) -> Callable[[str, int], object]:
    """Make what makes the policy for a device, of its options as JSON and the seed."""

    def make(options: str, seed: int) -> Policy:
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        made = policy.__new__(policy)
        made.device = config
        words = hashlib.sha256(f"{policy.path} {policy.name}".encode()).digest()[:8]
        made.rng = np.random.default_rng([seed, int.from_bytes(words, "little")])
        policy.__init__(made, **json.loads(options))
        return made

    return make
