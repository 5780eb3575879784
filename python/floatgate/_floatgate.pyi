"""Extension module: bindings of the simulator. Use the other modules of the package instead."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Protocol, TypedDict, final

import pyarrow as pa
from typing_extensions import disjoint_base

__all__ = [
    "PADDING",
    "Block",
    "BlockState",
    "Bound",
    "Call",
    "Change",
    "Column",
    "Context",
    "Copy",
    "DeviceConfig",
    "Ended",
    "Ending",
    "FoundBlock",
    "FoundMerge",
    "Ftl",
    "Gather",
    "InHand",
    "KeptBlock",
    "Kind",
    "Location",
    "LookUp",
    "PageMap",
    "Place",
    "Program",
    "ProgramCause",
    "Purpose",
    "Recovering",
    "Requests",
    "Role",
    "SchemeReport",
    "Shape",
    "Shared",
    "Simulator",
    "Space",
    "Step",
    "Target",
    "Tasks",
    "Transaction",
    "Transactions",
    "Units",
    "WaitCause",
    "__version__",
    "_provoke_panic",
    "builtin_names",
    "check_policies",
    "check_precondition",
    "check_result",
    "check_summary",
    "check_table",
    "check_workload",
    "command",
    "compare",
    "draw",
    "explain",
    "grouped_files",
    "import_config",
    "lifetime",
    "metric",
    "new_name",
    "object_info",
    "policy_names",
    "report",
    "run",
    "seal",
    "serve",
    "state_info",
    "summary_text",
    "trace_convert",
    "trace_info",
    "trace_synth",
]

__version__: str

class _Progress(Protocol):
    def __call__(self, part: str, share: float | None, /) -> object: ...

class _RunOptions(TypedDict):
    workloads: list[str]
    precondition: str | None
    saved: str | None
    prewrite: str
    seed: int
    attribution: bool
    out: str | None
    requests: bool
    series: str | None
    timeline: str | None
    tables: dict[str, dict[str, object]]

@final
class Requests:
    @staticmethod
    def from_arrow(table: object, time_unit: str | None) -> Requests: ...
    @staticmethod
    def from_rows(rows: object, time_unit: str | None) -> Requests: ...
    def __len__(self) -> int: ...

class _LifetimeOptions(TypedDict):
    workloads: list[str]
    until: str
    precondition: str | None
    endurance_scale: float
    seed: int
    seeds: str | None
    out: str | None

class _FitOptions(TypedDict):
    out: str | None
    requests: int | None
    scale_rate: float | None
    scale_footprint: float | None
    seed: int

@final
class Column:
    """A read-only column of numbers, for NumPy."""

    @property
    def __array_interface__(self) -> dict[str, object]: ...

@final
class Units:
    """Units in the buffer, for an eviction policy."""

    def entries(self) -> int: ...
    def rows(self) -> bytes: ...

PADDING: int
"""Owner of a physical unit that was programmed without data."""

@final
class Kind:
    """Kind of an operation."""

    HostRead: ClassVar[Kind]
    SlotRead: ClassVar[Kind]
    RmwRead: ClassVar[Kind]
    Write: ClassVar[Kind]
    GcRead: ClassVar[Kind]
    GcWrite: ClassVar[Kind]
    CopyBack: ClassVar[Kind]
    Erase: ClassVar[Kind]
    Summary: ClassVar[Kind]
    Translate: ClassVar[Kind]
    MapRead: ClassVar[Kind]
    MapWrite: ClassVar[Kind]
    MergeRead: ClassVar[Kind]
    MergeWrite: ClassVar[Kind]
    MapHold: ClassVar[Kind]
    ReadAhead: ClassVar[Kind]
    RebuildRead: ClassVar[Kind]
    def __hash__(self) -> int: ...
    def __deepcopy__(self, _memo: object, /) -> Kind: ...
    def __int__(self) -> int: ...

@final
class Purpose:
    """Reason for an operation of garbage collection, for observers."""

    OfClass: ClassVar[Purpose]
    Wear: ClassVar[Purpose]
    Merge: ClassVar[Purpose]
    SwitchMerge: ClassVar[Purpose]
    PartialMerge: ClassVar[Purpose]
    FullMerge: ClassVar[Purpose]
    Fold: ClassVar[Purpose]
    Rebuild: ClassVar[Purpose]
    Refresh: ClassVar[Purpose]
    def __hash__(self) -> int: ...
    def __deepcopy__(self, _memo: object, /) -> Purpose: ...
    def __int__(self) -> int: ...

@final
class Role:
    """Contents of a block."""

    Data: ClassVar[Role]
    Map: ClassVar[Role]
    Cache: ClassVar[Role]
    Parity: ClassVar[Role]
    def __hash__(self) -> int: ...
    def __deepcopy__(self, _memo: object, /) -> Role: ...
    def __int__(self) -> int: ...

@final
class BlockState:
    """State of a block in its life cycle. A scheme keeps blocks in the state ``Logical``."""

    Free: ClassVar[BlockState]
    Open: ClassVar[BlockState]
    Closed: ClassVar[BlockState]
    Victim: ClassVar[BlockState]
    AwaitingErase: ClassVar[BlockState]
    Logical: ClassVar[BlockState]
    Failed: ClassVar[BlockState]
    Bad: ClassVar[BlockState]
    WornOut: ClassVar[BlockState]
    def __hash__(self) -> int: ...
    def __deepcopy__(self, _memo: object, /) -> BlockState: ...
    def __int__(self) -> int: ...

@final
class ProgramCause:
    """Cause of a program."""

    Host: ClassVar[ProgramCause]
    Gc: ClassVar[ProgramCause]
    Wear: ClassVar[ProgramCause]
    Summary: ClassVar[ProgramCause]
    Padding: ClassVar[ProgramCause]
    WasteCopyback: ClassVar[ProgramCause]
    WasteAlignment: ClassVar[ProgramCause]
    Map: ClassVar[ProgramCause]
    Merge: ClassVar[ProgramCause]
    Journal: ClassVar[ProgramCause]
    Checkpoint: ClassVar[ProgramCause]
    Fold: ClassVar[ProgramCause]
    Parity: ClassVar[ProgramCause]
    Rebuild: ClassVar[ProgramCause]
    Refresh: ClassVar[ProgramCause]
    def __hash__(self) -> int: ...
    def __deepcopy__(self, _memo: object, /) -> ProgramCause: ...
    def __int__(self) -> int: ...

@disjoint_base
class LookUp:
    """Reason for which a map entry is looked up."""

    @final
    class Read(LookUp):
        """A read needs it, unless the controller has the unit itself."""

        __match_args__ = ()
        def __new__(cls) -> LookUp.Read: ...

    @final
    class Write(LookUp):
        """A write needs it."""

        __match_args__ = ()
        def __new__(cls) -> LookUp.Write: ...

    @final
    class Await(LookUp):
        """The operation needs it, and has not found it: it waits."""

        __match_args__ = ("id",)
        def __new__(cls, id: int) -> LookUp.Await: ...
        @property
        def id(self) -> int: ...

    @final
    class Arrived(LookUp):
        """An operation that has waited for it continues."""

        __match_args__ = ()
        def __new__(cls) -> LookUp.Arrived: ...

    def __deepcopy__(self, _memo: object, /) -> LookUp: ...

@disjoint_base
class Change:
    """Change of the location of a unit."""

    @final
    class Entry(Change):
        """A write has been programmed, or a trim has removed the unit from the map."""

        __match_args__ = ()
        def __new__(cls) -> Change.Entry: ...

    @final
    class Moved(Change):
        """Garbage collection has moved the unit from this address."""

        __match_args__ = ("ppn",)
        def __new__(cls, ppn: int) -> Change.Moved: ...
        @property
        def ppn(self) -> int: ...

    @final
    class Trimmed(Change):
        """A trim has made the copy in flash invalid."""

        __match_args__ = ()
        def __new__(cls) -> Change.Trimmed: ...

    def __deepcopy__(self, _memo: object, /) -> Change: ...

@disjoint_base
class Program:
    """Program whose target is asked for."""

    @final
    class Write(Program):
        """A write of a unit."""

        __match_args__ = ("lpn",)
        def __new__(cls, lpn: int) -> Program.Write: ...
        @property
        def lpn(self) -> int: ...

    @final
    class Copies(Program):
        """Copies, by the number of their operation."""

        __match_args__ = ("number",)
        def __new__(cls, number: int) -> Program.Copies: ...
        @property
        def number(self) -> int: ...

    def __deepcopy__(self, _memo: object, /) -> Program: ...

@disjoint_base
class Ended:
    """End of an operation on kept blocks."""

    @final
    class CopyRead(Ended):
        """A read of units that are to be copied, with the number of the copies."""

        __match_args__ = ("number",)
        def __new__(cls, number: int) -> Ended.CopyRead: ...
        @property
        def number(self) -> int: ...

    @final
    class MapRead(Ended):
        """A read of a translation page."""

        __match_args__ = ("id",)
        def __new__(cls, id: int) -> Ended.MapRead: ...
        @property
        def id(self) -> int: ...

    @final
    class Writes(Ended):
        """A program that held a host write of a unit, with the first address of the program."""

        __match_args__ = (
            "lpn",
            "ppn",
        )
        def __new__(cls, lpn: int, ppn: int) -> Ended.Writes: ...
        @property
        def lpn(self) -> int: ...
        @property
        def ppn(self) -> int: ...

    @final
    class Copies(Ended):
        """A program of copies, with their number and the first address of the program."""

        __match_args__ = (
            "number",
            "ppn",
        )
        def __new__(cls, number: int, ppn: int) -> Ended.Copies: ...
        @property
        def number(self) -> int: ...
        @property
        def ppn(self) -> int: ...

    @final
    class MapWrite(Ended):
        """A program of a translation page."""

        __match_args__ = ("id",)
        def __new__(cls, id: int) -> Ended.MapWrite: ...
        @property
        def id(self) -> int: ...

    @final
    class MapWriteFailed(Ended):
        """A failed program of a translation page, whose block is retired."""

        __match_args__ = ("id",)
        def __new__(cls, id: int) -> Ended.MapWriteFailed: ...
        @property
        def id(self) -> int: ...

    @final
    class ProgramFailed(Ended):
        """A failed program of host writes, or of copies alone with their number."""

        __match_args__ = (
            "writes",
            "number",
            "ppn",
        )
        def __new__(cls, writes: list[int], number: int | None, ppn: int) -> Ended.ProgramFailed: ...
        @property
        def writes(self) -> list[int]: ...
        @property
        def number(self) -> int | None: ...
        @property
        def ppn(self) -> int: ...

    @final
    class Erase(Ended):
        """An erase of a block in this plane."""

        __match_args__ = ("plane",)
        def __new__(cls, plane: int) -> Ended.Erase: ...
        @property
        def plane(self) -> int: ...

    @final
    class EraseFailed(Ended):
        """A failed erase of a block in this plane, which is bad now."""

        __match_args__ = ("plane",)
        def __new__(cls, plane: int) -> Ended.EraseFailed: ...
        @property
        def plane(self) -> int: ...

    def __deepcopy__(self, _memo: object, /) -> Ended: ...

@disjoint_base
class Step:
    """Step of a scheme."""

    @final
    class Call(Step):
        """A call that the scheme has pushed to its tasks."""

        __match_args__ = (
            "number",
            "step",
        )
        def __new__(cls, number: int, step: int) -> Step.Call: ...
        @property
        def number(self) -> int: ...
        @property
        def step(self) -> int: ...

    @final
    class MapProgrammed(Step):
        """The operations that waited for the program of a translation page have been resumed."""

        __match_args__ = (
            "page",
            "ppn",
        )
        def __new__(cls, page: int, ppn: int) -> Step.MapProgrammed: ...
        @property
        def page(self) -> int: ...
        @property
        def ppn(self) -> int: ...

    @final
    class Collected(Step):
        """Garbage collection of a plane has chosen its next step."""

        __match_args__ = ("plane",)
        def __new__(cls, plane: int) -> Step.Collected: ...
        @property
        def plane(self) -> int: ...

    @final
    class ReadOnly(Step):
        """The device has become read-only: all updates and writes without an address end."""

        __match_args__ = ()
        def __new__(cls) -> Step.ReadOnly: ...

    @final
    class Seal(Step):
        """Functional mode ends."""

        __match_args__ = ()
        def __new__(cls) -> Step.Seal: ...

    def __deepcopy__(self, _memo: object, /) -> Step: ...

@disjoint_base
class Location:
    """Location of a logical unit."""

    @final
    class Unmapped(Location):
        """The unit was never written, or was trimmed."""

        __match_args__ = ()
        def __new__(cls) -> Location.Unmapped: ...

    @final
    class Flash(Location):
        """Flash, at this address."""

        __match_args__ = ("ppn",)
        def __new__(cls, ppn: int) -> Location.Flash: ...
        @property
        def ppn(self) -> int: ...

    @final
    class Slot(Location):
        """Write slot of the controller: the write has not ended."""

        __match_args__ = ("id",)
        def __new__(cls, id: int) -> Location.Slot: ...
        @property
        def id(self) -> int: ...

    def __deepcopy__(self, _memo: object, /) -> Location: ...

@disjoint_base
class WaitCause:
    """Cause of the waits in a queue of a scheme."""

    @final
    class Merge(WaitCause):
        """A merge, or a block that is not free yet."""

        __match_args__ = ()
        def __new__(cls) -> WaitCause.Merge: ...

    @final
    class Program(WaitCause):
        """A program of earlier writes in a block of this plane."""

        __match_args__ = ("plane",)
        def __new__(cls, plane: int) -> WaitCause.Program: ...
        @property
        def plane(self) -> int: ...

    @final
    class AsIn(WaitCause):
        """The cause of the waits in another queue."""

        __match_args__ = ("queue",)
        def __new__(cls, queue: int) -> WaitCause.AsIn: ...
        @property
        def queue(self) -> int: ...

    def __deepcopy__(self, _memo: object, /) -> WaitCause: ...

@disjoint_base
class Place:
    """Address of a program that is not bound yet."""

    @final
    class Frontier(Place):
        """The next address of the plane's frontier: for schemes that keep no blocks."""

        __match_args__ = ()
        def __new__(cls) -> Place.Frontier: ...

    @final
    class At(Place):
        """An address in a kept block."""

        __match_args__ = ("ppn",)
        def __new__(cls, ppn: int) -> Place.At: ...
        @property
        def ppn(self) -> int: ...

    @final
    class Unknown(Place):
        """An address in a kept block that is not known yet."""

        __match_args__ = ()
        def __new__(cls) -> Place.Unknown: ...

    def __deepcopy__(self, _memo: object, /) -> Place: ...

@final
class Target:
    """Target of a program that is not bound yet."""

    def __new__(cls, plane: int | None, place: Place) -> Target: ...
    @property
    def plane(self) -> int | None:
        """Plane, if it is fixed."""
    @property
    def place(self) -> Place:
        """Address in the plane."""
    def __deepcopy__(self, _memo: object, /) -> Target: ...

@final
class Bound:
    """Program that a scheme has bound to its address."""

    def __new__(cls, class_: int, plane: int, ppn: int) -> Bound: ...
    @property
    def class_(self) -> int:
        """Scheduling class: an `OperationClass`."""
    @property
    def plane(self) -> int:
        """Plane of the program."""
    @property
    def ppn(self) -> int:
        """First physical unit of the program."""
    def __deepcopy__(self, _memo: object, /) -> Bound: ...

@final
class KeptBlock:
    """Kept block of data."""

    def __new__(cls, block: int, units: int, is_filled: bool, kind: int = ...) -> KeptBlock: ...
    @property
    def block(self) -> int:
        """The block."""
    @property
    def units(self) -> int:
        """Number of its units that have been programmed, or are being programmed."""
    @property
    def is_filled(self) -> bool:
        """True if no more units of it will be programmed, and no program is in flight."""
    @property
    def kind(self) -> int:
        """0, or 1 for blocks that a full merge fills, or 2 and more for log blocks."""
    def __deepcopy__(self, _memo: object, /) -> KeptBlock: ...

@final
class SchemeReport:
    """Figures of a mapping scheme, as of now."""

    def __new__(
        cls,
        unwritten: int = ...,
        listed_trims: int = ...,
        dropped: int = ...,
        replacing: int = ...,
        merging: list[int] = ...,
        loading: int = ...,
        outstanding: str = ...,
    ) -> SchemeReport: ...
    @property
    def unwritten(self) -> int:
        """Number of units that were skipped in their blocks and never programmed."""
    @property
    def listed_trims(self) -> int:
        """Number of trimmed units that a controller would remember."""
    @property
    def dropped(self) -> int:
        """Number of writes that were trimmed while they waited."""
    @property
    def replacing(self) -> int:
        """Number of failed blocks whose places other blocks are taking."""
    @property
    def merging(self) -> list[int]:
        """Numbers of switch, partial and full merges in progress."""
    @property
    def loading(self) -> int:
        """Number of map entries that are being loaded."""
    @property
    def outstanding(self) -> str:
        """Outstanding work, in words."""
    def __deepcopy__(self, _memo: object, /) -> SchemeReport: ...

@final
class FoundBlock:
    """Block with data that a recovery has found."""

    def __new__(cls, block: int, end: int) -> FoundBlock: ...
    @property
    def block(self) -> int:
        """The block."""
    @property
    def end(self) -> int:
        """Offset after its last programmed unit."""
    def __deepcopy__(self, _memo: object, /) -> FoundBlock: ...

@final
class FoundMerge:
    """Merge that a recovery performs: all units of a logical block are copied into a free block."""

    def __new__(cls, units: list[int | None], planes: list[int]) -> FoundMerge: ...
    @property
    def units(self) -> list[int | None]:
        """Units of the logical block, by offset."""
    @property
    def planes(self) -> list[int]:
        """Planes that may give the free block."""
    def __deepcopy__(self, _memo: object, /) -> FoundMerge: ...

@final
class Copy:
    """A unit that is copied."""

    def __new__(cls, lpn: int, from_: int, to: int | None = ...) -> Copy: ...
    @property
    def lpn(self) -> int:
        """The logical unit."""
    @property
    def from_(self) -> int:
        """Address that it is read from."""
    @property
    def to(self) -> int | None:
        """Address that it is programmed at, once it is bound."""
    def __deepcopy__(self, _memo: object, /) -> Copy: ...

@final
class Call:
    """Deferred call of a mapping scheme to itself. The scheme defines the meaning of the numbers."""

    def __new__(cls, number: int, step: int = ...) -> Call: ...
    @property
    def number(self) -> int:
        """Argument of the call."""
    @property
    def step(self) -> int:
        """Number of the step."""
    def __deepcopy__(self, _memo: object, /) -> Call: ...

@final
class InHand:
    """Units that garbage collection of a plane still has to program, and blocks that it will free."""

    def __new__(cls, units: int, read: int, waste: int, awaiting_erase: int, coming: int) -> InHand: ...
    @property
    def units(self) -> int:
        """Units to be programmed."""
    @property
    def read(self) -> int:
        """Units among them that were read."""
    @property
    def waste(self) -> int:
        """Units that blind copy-back may waste."""
    @property
    def awaiting_erase(self) -> int:
        """Blocks that await their erase."""
    @property
    def coming(self) -> int:
        """Blocks that will be free when all of this has been moved."""
    def __deepcopy__(self, _memo: object, /) -> InHand: ...

@final
class Block:
    """State of a block."""

    @property
    def valid(self) -> int:
        """Number of valid units."""
    @property
    def dependents(self) -> int:
        """Number of reads, copies and programs that the block must not be erased before."""
    @property
    def erases(self) -> int:
        """Number of erases so far."""
    @property
    def written(self) -> int:
        """Number of units with valid data that were programmed since the device was created."""
    @property
    def state(self) -> BlockState:
        """State in the life cycle."""
    @property
    def role(self) -> Role:
        """Contents, from its opening to its erase."""
    @property
    def failed(self) -> bool:
        """True if a program or an erase of the block has failed."""

@final
class Shape:
    """Parameters of the device that policies often need."""

    @property
    def planes(self) -> int:
        """Planes of the device, each of which has blocks of its own."""
    @property
    def data_units(self) -> int:
        """Mapping units of data in a block."""
    @property
    def soft(self) -> int:
        """Number of free blocks of a plane at or below which garbage collection runs."""
    @property
    def hard(self) -> int:
        """Number of free blocks of a plane at or below which garbage collection takes priority."""
    @property
    def sectors_per_unit(self) -> int:
        """Sectors of a mapping unit."""
    @property
    def units_per_page(self) -> int:
        """Mapping units of a page."""
    @property
    def pages_per_unit(self) -> int:
        """Pages of a mapping unit."""
    @property
    def units_per_program(self) -> int:
        """Mapping units that one program command fills."""
    @property
    def pages_per_program(self) -> int:
        """Pages that one program command fills."""
    @property
    def units_per_stripe(self) -> int:
        """Number of consecutive units that go to the same plane."""
    @property
    def summary(self) -> bool:
        """True if each block ends with a summary."""
    @property
    def leaves_out_pages(self) -> bool:
        """True if pages of blocks may be left out."""
    @property
    def map_pages(self) -> int:
        """Number of translation pages."""

@final
class Ftl:
    """The flash translation layer (FTL), without the scheme."""

    @property
    def blocks(self) -> Space:
        """The physical space."""
    @property
    def map(self) -> PageMap:
        """The page map."""
    @property
    def shape(self) -> Shape:
        """Parameters of the device."""
    def is_read_only(self) -> bool:
        """Return True if the device is read-only."""
    def newest_at(self, ppn: int) -> int | None:
        """Return the unit whose newest version is at a physical address."""
    def ppn_in_flash(self, lpn: int) -> int | None:
        """Return the address of the newest version of a unit in flash, if nothing newer is in flight."""
    def note_program(self, cause: ProgramCause, units: int) -> None:
        """Count a program command that holds `units` units of data."""

@final
class Space:
    """The physical space: the blocks of the device."""

    def __len__(self) -> int:
        """Return the number of blocks."""
    def units_per_block(self) -> int:
        """Return the number of physical addresses of a block, including its summary."""
    def data_units(self) -> int:
        """Return the number of data units in a data block."""
    def first_unit(self, block: int) -> int:
        """Return the first unit of a block."""
    def block_of(self, ppn: int) -> int:
        """Return the block of a unit."""
    def offset_in_block(self, ppn: int) -> int:
        """Return the offset of a unit in its block."""
    def plane_of(self, block: int) -> int:
        """Return the plane of a block."""
    def block(self, block: int) -> Block:
        """Return the state of a block."""
    def of_plane(self, plane: int) -> list[Block]:
        """Return the states of the blocks of a plane, in their order."""
    def free_blocks(self, plane: int, role: Role = ...) -> int:
        """Return the number of free blocks of a plane for data, or for another role."""
    def is_valid(self, ppn: int) -> bool:
        """Return True if a unit is valid: it holds the version of its logical unit that counts."""
    def first_valid(self, start: int, end: int) -> int | None:
        """Return the first valid unit from `start` to before `end`."""
    def visit_valid(self, start: int, end: int, most: int = ...) -> list[int]:
        """Return the valid units from `start` to before `end`, at most `most`."""
    def is_kept(self, block: int) -> bool:
        """Return True if the scheme has opened a block."""
    def logical(self) -> list[int]:
        """Return the blocks that the scheme has opened and not given up."""
    def awaiting_erase(self) -> list[int]:
        """Return the blocks that await their erase."""
    def can_erase(self, block: int) -> bool:
        """Return True if a block awaits its erase and nothing depends on it."""
    def erases_of_next(self, plane: int) -> int:
        """Return the number of erases of the free block that is opened next in a plane."""
    def open_logical(self, plane: int) -> int:
        """Open a free block of a plane, and return it. There must be one."""
    def await_erase_for(self, block: int, purpose: Purpose) -> None:
        """Have a kept block without valid units await its erase. See `give_up`."""
    def depend(self, ppn: int) -> int:
        """Add a dependent to the block of a unit, and return the block. `Context.release` ends the dependency."""

@final
class PageMap:
    """The page map: the location of each logical unit, and the owner of each physical unit."""

    def __len__(self) -> int:
        """Return the number of logical units of the host."""
    def all(self) -> int:
        """Return the number of logical units, including the device's own."""
    def get(self, lpn: int) -> Location:
        """Return the location of a logical unit."""
    def owner(self, ppn: int) -> int:
        """Return the logical unit that was programmed at an address, or `PADDING`."""
    def set_owner(self, ppn: int, lpn: int) -> None:
        """Set the owner of an address."""

@final
class Transaction:
    """Operation on the flash, or mapping unit that waits for one. Absent values are None.

    ``cx.ops[id]`` shows the fields of an outstanding operation, and changes them.
    """

    def __new__(cls, kind: Kind, class_: int) -> Transaction: ...
    @staticmethod
    def copying(kind: Kind, plane: int, number: int, purpose: Purpose) -> Transaction:
        """Create a read or a program of units that a scheme copies. The scheme gets `number` at its end."""
    @staticmethod
    def erase(class_: int, plane: int, block: int) -> Transaction:
        """Create the erase of a block. See `give_up`."""
    @property
    def kind(self) -> Kind:
        """Kind."""
    @property
    def class_(self) -> int:
        """Scheduling class: an `OperationClass`."""
    @property
    def trimmed(self) -> bool:
        """True if a trim invalidated the write before it completed."""
    @property
    def complete(self) -> bool:
        """True if the write slot holds all sectors of the mapping unit."""
    @property
    def temperature(self) -> int:
        """Temperature class of the unit that is written, or another small number of the scheme."""
    @temperature.setter
    def temperature(self, value: int) -> None: ...
    @property
    def units(self) -> int:
        """Number of mapping units that a read transfers from its page."""
    @units.setter
    def units(self, value: int) -> None: ...
    @property
    def plane(self) -> int | None:
        """Plane."""
    @plane.setter
    def plane(self, value: int | None) -> None: ...
    @property
    def ppn(self) -> int | None:
        """Physical address of the first mapping unit."""
    @ppn.setter
    def ppn(self, value: int | None) -> None: ...
    @property
    def lpn(self) -> int | None:
        """First mapping unit."""
    @lpn.setter
    def lpn(self, value: int | None) -> None: ...
    @property
    def next(self) -> int | None:
        """Next host write in the same program."""
    @next.setter
    def next(self, value: int | None) -> None: ...
    @property
    def source(self) -> int | None:
        """Physical address of the data that the write replaces."""
    @property
    def dependency(self) -> int | None:
        """Block that must not be erased before the operation ends."""
    @dependency.setter
    def dependency(self, value: int | None) -> None: ...
    @property
    def older(self) -> int | None:
        """Older write of the same mapping unit for which this write waits."""
    @property
    def newer(self) -> int | None:
        """Newer write of the same mapping unit that waits for this write."""
    @property
    def block(self) -> int:
        """Block that is erased."""
    @property
    def logical_block(self) -> int:
        """Number of the copies."""
    @property
    def purpose(self) -> Purpose:
        """Reason for which units are copied."""

@final
class Transactions:
    """Outstanding operations, by number."""

    def __len__(self) -> int: ...
    def __getitem__(self, id: int, /) -> Transaction: ...
    def insert(self, operation: Transaction) -> int:
        """Add an operation, and return its number. `Context.enqueue` queues it."""
    def remove(self, id: int) -> Transaction:
        """Remove an operation, whose number must not be used any more."""

@final
class Tasks:
    """Deferred calls of the scheme to itself."""

    def push(self, call: Call) -> None:
        """Have the method `step` called with this call, after the current event."""

@final
class Context:
    """Interface of the device for mapping schemes. It is valid during a call of the scheme."""

    @property
    def ftl(self) -> Ftl:
        """The FTL, without the scheme."""
    @property
    def ops(self) -> Transactions:
        """The outstanding operations."""
    @property
    def tasks(self) -> Tasks:
        """The queue of tasks."""
    def queue(self, operation: Transaction) -> None:
        """Queue a new operation for its plane."""
    def enqueue(self, id: int) -> None:
        """Queue an operation for its plane: a host write that waits, or an operation of the scheme."""
    def has_time(self) -> bool:
        """Return False in functional mode, in which operations end at once."""
    def map_written(self, page: int, ppn: int) -> None:
        """Note that a translation page has been programmed in functional mode."""
    def request_units(self, id: int) -> int:
        """Return the number of mapping units of the host request that a write belongs to, or 1."""
    def is_durable(self) -> bool:
        """Return True if the power may be cut, so that a recovery may need a free block."""
    def note_waiting(self, id: int) -> None:
        """Note that a host write waits for the scheme, until it is queued for its plane or bound."""
    def note_queued(self, id: int, queue: int) -> None:
        """Note that a host write waits in this queue from now on. Queues are numbered by the scheme."""
    def note_cause(self, queue: int, cause: WaitCause) -> None:
        """Set the cause of the waits in a queue, from now on. At first, it is a merge."""
    def bind(self, id: int, ppn: int) -> None:
        """Bind a host write to an address. The data that it replaces is invalid from now on."""
    def take_over(self, older: int, newer: int) -> None:
        """Continue a host write that waits for `older`, an older write of its unit, which will not be programmed."""
    def drop_write(self, id: int) -> None:
        """End a host write that was trimmed before it was bound."""
    def refuse_write(self, id: int) -> None:
        """End a host write that will not be programmed, because the device is read-only."""
    def end_copy(self, copy: Copy) -> None:
        """End a copy: map its unit to it, unless the unit was overwritten or trimmed in the meantime."""
    def program_ended(self, ppn: int) -> None:
        """End a program of a data block. The summary of the block is queued if that was its last program."""
    def is_moving(self, plane: int, block: int) -> bool:
        """Return True if garbage collection of a plane still moves units of a block."""
    def release(self, block: int) -> None:
        """End the dependency of an operation on a block, which may then be erased."""
    def erase(self, block: int) -> None:
        """Queue the erase of a block that awaits it and has no dependents."""

@final
class Gather:
    """Copies of one program. The units are read, then the program is bound, then it ends."""

    def __new__(cls) -> Gather: ...
    def __len__(self) -> int:
        """Return the number of copies."""
    def __deepcopy__(self, _memo: object, /) -> Gather: ...
    def add(self, cx: Context, number: tuple[int, Purpose], from_: int) -> None:
        """Add a valid unit to the next program. The scheme gets the number at the end of each read."""
    def is_ready(self, cx: Context) -> bool:
        """Queue the last read. Return True if there are no reads to wait for."""
    def read_ended(self) -> bool:
        """End a read. Return True if it was the last one."""
    def bind(self, cx: Context, place_of: Callable[[Copy], int]) -> None:
        """Bind each copy to the address that a function gives. Copies that are no longer valid are dropped."""
    def bind_from(self, cx: Context, start: int) -> None:
        """Bind the copies to the units from `start` on, in the order in which they were added."""
    def copies(self) -> list[Copy]:
        """Return the copies of the program."""
    def forget(self, cx: Context) -> None:
        """Drop the copies of a program that has failed, or that will not start."""
    def end(self, cx: Context) -> None:
        """End the program, and map units to their copies."""

@final
class Recovering:
    """A recovery, for a scheme that takes over the blocks with data, oldest first."""

    @property
    def ftl(self) -> Ftl:
        """The FTL, without the scheme."""
    def found(self) -> list[FoundBlock]:
        """Erase blocks without newest versions, and return the others."""
    def merge(self, merge: FoundMerge) -> bool:
        """Copy the units of a logical block into a free block. Return False if there is none."""
    def keep(self) -> list[FoundBlock]:
        """Make the newest versions valid, and their blocks kept ones. Return these."""
    def close(self) -> None:
        """Make the newest versions valid, and close their blocks, which garbage collection reclaims."""

@final
class Ending:
    """Request to end a live device."""

    def __init__(self) -> None: ...
    def request(self) -> None:
        """Request the end."""

@final
class DeviceConfig:
    """A valid device configuration."""

    @staticmethod
    def load(name_or_path: str, overrides: list[str]) -> DeviceConfig:
        """Load a built-in device by name, or a device file by path."""
    @staticmethod
    def from_toml(text: str, called: str, overrides: list[str]) -> DeviceConfig:
        """Parse the text of a device file."""
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def state_digest(self) -> str: ...
    @property
    def array(self) -> str | None: ...
    @property
    def base(self) -> str | None: ...
    @property
    def logical_bytes(self) -> int: ...
    @property
    def physical_bytes(self) -> int: ...
    def to_json(self) -> str: ...
    def to_toml(self) -> str: ...
    def scaling(self, scale: str) -> tuple[list[str], list[str]]:
        """Return the overrides that scale the device, and notes on effects that do not scale."""
    def figures(self) -> list[tuple[str, str, str | None]]: ...
    def has_one_state(self, precondition: str) -> bool:
        """Return True if all seeds prepare equal states of the device."""
    def externals(self) -> list[tuple[str, str, str, str]]:
        """Return the policies in Python: path of the key, name, digest of the source, options as JSON."""
    def with_policies(self, makers: dict[str, Callable[[str, int, Shape], object]]) -> DeviceConfig:
        """Return the device with factories of its policies in Python, by path of the key."""

@final
class Shared:
    """State before the runs of several seeds, which the first run prepares if it does not depend on the seed."""

    def __new__(cls, device: DeviceConfig, precondition: str) -> Shared: ...

@final
class Simulator:
    """A device with a clock. Times are in picoseconds, addresses and lengths in sectors."""

    def __new__(
        cls,
        device: DeviceConfig,
        *,
        precondition: str,
        seed: int,
        attribution: bool,
        progress: _Progress | None,
    ) -> Simulator: ...
    @property
    def now(self) -> int: ...
    @property
    def next_event_time(self) -> int | None: ...
    @property
    def outstanding(self) -> int: ...
    @property
    def has_room(self) -> bool: ...
    @property
    def is_idle(self) -> bool: ...
    @property
    def precondition(self) -> str: ...
    @property
    def submitted(self) -> int: ...
    def submit(self, operation: str, sector: int, sectors: int, at: int, *, fua: bool) -> int: ...
    def advance(self, until: int | None, *, progress: _Progress | None) -> None: ...
    def completions(self) -> pa.Table: ...
    def counters(self) -> list[tuple[str, int]]: ...
    def blocks(self) -> pa.Table: ...
    def units(self) -> pa.Table: ...
    def map(self) -> pa.Table: ...
    def fork(self) -> Simulator: ...
    def in_same_state(self, device: DeviceConfig, *, seed: int, attribution: bool) -> Simulator: ...
    def save(self, path: str, *, progress: _Progress | None) -> None: ...
    @staticmethod
    def load(
        path: str, device: DeviceConfig, *, seed: int, attribution: bool, progress: _Progress | None
    ) -> Simulator: ...

def builtin_names() -> list[str]: ...
def policy_names(path: str) -> list[str]: ...
def check_policies(device: DeviceConfig) -> None: ...
def command(
    arguments: list[str],
    policies: tuple[Callable[[str, str, str, str], object], list[tuple[str, str, str]]] | None = None,
) -> int: ...
def serve(
    device: DeviceConfig, arguments: list[str], ending: Ending, ready: Callable[[str], None]
) -> tuple[int, str]: ...
def run(
    device: DeviceConfig,
    options: _RunOptions,
    *,
    prepared: Simulator | None,
    shared: Shared | None,
    progress: _Progress | None,
) -> tuple[str, pa.Table | None, pa.Table | None]: ...
def lifetime(device: DeviceConfig, options: _LifetimeOptions, *, progress: _Progress | None) -> str: ...
def report(summary: str, series: pa.Table | None) -> str: ...
def summary_text(json: str, with_details: bool) -> str: ...
def import_config(text: str | None, called: str, scenario: int) -> tuple[str, str, list[tuple[str, str]]]: ...
def check_precondition(text: str) -> None: ...
def check_workload(text: str) -> None: ...
def object_info(path: str) -> str: ...
def trace_info(path: str, options: str, *, progress: _Progress | None) -> tuple[str, str]: ...
def trace_synth(
    path: str, options: str, fitting: _FitOptions, *, progress: _Progress | None
) -> tuple[str, str, str]: ...
def trace_convert(
    path: str, options: str, output: str, to: str, *, progress: _Progress | None
) -> tuple[str, list[str]]: ...
def explain(directory: Path, request: str) -> tuple[str, str, str | None]: ...
def draw(directory: Path, span: str | None, title: str | None, out: Path | None) -> Path: ...
def check_summary(name: str, json: str) -> None: ...
def check_result(path: Path, summary: str) -> None: ...
def check_table(path: Path, summary: str, table: Path) -> None: ...
def seal(directory: Path, summary: str, written: list[str]) -> str: ...
def compare(results: list[tuple[str, bool, list[tuple[str, str]]]]) -> tuple[str, str, str]: ...
def grouped_files(arguments: list[str]) -> list[tuple[str, list[str]]]: ...
def metric(name: str) -> tuple[str, str, str]: ...
def new_name(old: str) -> str | None: ...
def state_info(path: str) -> str: ...
def _provoke_panic(text: str) -> None: ...
