"""Mapping scheme `toy-log-block`: logical blocks in data blocks, and one log block in each plane.

The log block takes the writes of the host. When it is full, full merges copy each logical block that it has units of
to a free block, and the log block is erased.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import floatgate as fg
from floatgate.policies import (
    PADDING,
    Bound,
    Change,
    Context,
    Ended,
    FoundBlock,
    FoundMerge,
    Ftl,
    Gather,
    KeptBlock,
    Kind,
    OperationClass,
    Place,
    Program,
    ProgramCause,
    Purpose,
    Recovering,
    SchemeReport,
    Step,
    Target,
    Transaction,
    give_up,
    keep_found,
)


@dataclass
class Plane:
    """State of a plane. A block is followed by the number of its units that are programmed or bound."""

    log: int | None = None  # log block
    logged: int = 0
    data: dict[int, tuple[int, int]] = field(default_factory=dict)  # data blocks by the number of the logical block
    merging: int | None = None  # logical block that is merged
    target: int = 0  # its new data block
    merged: int = 0
    sources: dict[int, int] = field(default_factory=dict)  # addresses of its units by their offsets
    end: int = 0  # offset after the last of them
    gather: Gather = field(default_factory=Gather)  # copies of the next program
    busy: bool = False  # a program, or a read for it, is in flight
    pending: deque[int] = field(default_factory=deque)  # host writes that wait


@fg.policies.register("toy-log-block")
class LogBlock(fg.policies.WholeMap, fg.policies.Unsaved, fg.policies.Mapping):
    def __init__(self) -> None:
        size = self.device["geometry"]
        count = math.prod(size[level] for level in ("channels", "chips", "dies", "planes"))
        self.planes = [Plane() for _ in range(count)]
        self.unwritten = 0

    def split(self, ftl: Ftl, lpn: int) -> tuple[int, int, int]:
        """Return the plane, the logical block and the offset of a unit."""
        index, plane = divmod(lpn, len(self.planes))
        number, offset = divmod(index, ftl.blocks.data_units())
        return plane, number, offset

    def go_on(self, cx: Context, plane: int) -> None:
        """Take the next step of a plane: of the merges of a full log block, or towards the next host write."""
        state, blocks = self.planes[plane], cx.ftl.blocks
        if state.busy or not state.pending:
            return
        if state.logged == blocks.data_units() and not self.empty_log(cx, plane):
            return  # merges continue
        if state.log is None:
            if blocks.free_blocks(plane) == 0:
                return  # an erase continues
            state.log, state.logged = blocks.open_logical(plane), 0
        state.busy = True
        cx.enqueue(state.pending.popleft())

    def empty_log(self, cx: Context, plane: int) -> bool:
        """Take the next step of the merges of a full log block. Return True if it was given up."""
        state, blocks = self.planes[plane], cx.ftl.blocks
        assert state.log is not None
        first = blocks.first_unit(state.log)
        while True:
            if state.merging is None:
                unit = blocks.first_valid(first, first + state.logged)
                if unit is None:
                    give_up(cx, state.log, Purpose.FullMerge)
                    state.log, state.logged = None, 0
                    return True
                if blocks.free_blocks(plane) == 0:
                    return False
                self.begin_merge(cx.ftl, plane, self.split(cx.ftl, cx.ftl.map.owner(unit))[1])
            if state.merged < state.end:
                self.copy(cx, plane)
                return False
            self.end_merge(cx, plane)

    def begin_merge(self, ftl: Ftl, plane: int, number: int) -> None:
        """Open a block for a logical block, and find its valid units, in its data block and in the log block."""
        state, blocks = self.planes[plane], ftl.blocks
        state.merging, state.target, state.merged, state.sources = number, blocks.open_logical(plane), 0, {}
        for block in (state.log, state.data.get(number, (None, 0))[0]):
            if block is not None:
                first = blocks.first_unit(block)
                for ppn in blocks.visit_valid(first, first + blocks.data_units()):
                    _, owner, offset = self.split(ftl, ftl.map.owner(ppn))
                    if owner == number:
                        state.sources[offset] = ppn
        state.end = max(state.sources) + 1

    def copy(self, cx: Context, plane: int) -> None:
        """Read the units of the next program of a merge. Offsets without a valid unit become padding."""
        state, group = self.planes[plane], cx.ftl.shape.units_per_program
        state.busy = True
        for offset in range(state.merged, state.merged + group):
            ppn = state.sources.get(offset)
            if ppn is not None and cx.ftl.blocks.is_valid(ppn):  # no trim has invalidated it
                state.gather.add(cx, (plane, Purpose.FullMerge), ppn)
        if state.gather.is_ready(cx):
            cx.queue(Transaction.copying(Kind.MergeWrite, plane, plane, Purpose.FullMerge))

    def end_merge(self, cx: Context, plane: int) -> None:
        """Replace the data block of a logical block."""
        state = self.planes[plane]
        assert state.merging is not None
        if state.merging in state.data:
            old, units = state.data[state.merging]
            self.unwritten += cx.ftl.blocks.data_units() - units
            give_up(cx, old, Purpose.FullMerge)
        state.data[state.merging] = (state.target, state.merged)
        state.merging = None

    def changed(self, cx: Context, lpn: int, change: Change) -> None:
        pass

    def place(self, cx: Context, id: int) -> None:
        operation = cx.ops[id]
        assert operation.lpn is not None
        plane = operation.plane = operation.lpn % len(self.planes)
        self.planes[plane].pending.append(id)
        self.go_on(cx, plane)

    def target(self, ftl: Ftl, of: Program) -> Target:
        match of:
            case Program.Write(unit):
                return Target(unit % len(self.planes), Place.Unknown())
            case Program.Copies(plane):
                return Target(plane, Place.Unknown())
        raise TypeError(of)

    def bind(self, cx: Context, id: int) -> Bound | None:
        operation, ftl = cx.ops[id], cx.ftl
        plane, group = operation.plane, ftl.shape.units_per_program
        assert plane is not None
        state, is_merge = self.planes[plane], operation.kind == Kind.MergeWrite
        block = state.target if is_merge else state.log
        assert block is not None
        first = ftl.blocks.first_unit(block)
        ppn = first + (state.merged if is_merge else state.logged)
        for unit in range(ppn, ppn + group):
            ftl.map.set_owner(unit, PADDING)
        if is_merge:
            state.merged += group
            state.gather.bind(cx, lambda copy: first + self.split(ftl, copy.lpn)[2])
            ftl.note_program(ProgramCause.Merge, len(state.gather))
            return Bound(OperationClass.GC, plane, ppn)
        state.logged += group
        writes = [id] + [state.pending.popleft() for _ in range(min(group - 1, len(state.pending)))]
        for offset, write in enumerate(writes):
            cx.bind(write, ppn + offset)
            cx.ops[write].next = writes[offset + 1] if offset + 1 < len(writes) else None
        ftl.note_program(ProgramCause.Host, len(writes))
        return Bound(OperationClass.HOST_PROGRAM, plane, ppn)

    def ended(self, cx: Context, end: Ended) -> bool:
        match end:
            case Ended.Writes(ppn=start) | Ended.Copies(ppn=start):
                plane = cx.ftl.blocks.plane_of(cx.ftl.blocks.block_of(start))
                self.planes[plane].gather.end(cx)
                self.planes[plane].busy = False
                cx.program_ended(start)
                self.go_on(cx, plane)
            case Ended.Erase(plane):
                self.go_on(cx, plane)
            case Ended.CopyRead(plane):
                if self.planes[plane].gather.read_ended():
                    cx.queue(Transaction.copying(Kind.MergeWrite, plane, plane, Purpose.FullMerge))
        return True

    def step(self, cx: Context, step: Step) -> None:
        pass

    def recover(self, found: Recovering) -> None:
        """Merge each logical block that has units outside of its data block. No log block is left then."""
        ftl = found.ftl
        for kept in keep_found(found, self.unfit):
            plane, number, _ = self.units_in(ftl, kept)[0]
            self.planes[plane].data[number] = (kept.block, kept.end)

    def units_in(self, ftl: Ftl, found: FoundBlock) -> list[tuple[int, int, bool]]:
        """Return plane and logical block of each newest unit in a block, and True if it is at its offset."""
        units = []
        for offset in range(found.end):
            lpn = ftl.newest_at(ftl.blocks.first_unit(found.block) + offset)
            if lpn is not None:
                plane, number, place = self.split(ftl, lpn)
                units.append((plane, number, place == offset))
        return units

    def unfit(self, ftl: Ftl, found: list[FoundBlock]) -> FoundMerge | None:
        """Return a merge of a logical block whose units are not alone in one block, each at its offset."""
        seen: set[tuple[int, int]] = set()
        for block in found:
            units = set(self.units_in(ftl, block))
            logical = {(plane, number) for plane, number, _ in units}
            if len(units) > 1 or logical & seen or not all(is_in_place for *_, is_in_place in units):
                plane, number = min(logical)
                size, count = ftl.blocks.data_units(), len(self.planes)
                lpns = [(number * size + offset) * count + plane for offset in range(size)]
                return FoundMerge([lpn if lpn < len(ftl.map) else None for lpn in lpns], [plane])
            seen |= logical
        return None

    def recount(self, ftl: Ftl) -> None:
        """Check that data blocks have units of their logical blocks only, each at its offset."""
        for plane, state in enumerate(self.planes):
            for number, (block, _) in state.data.items():
                first = ftl.blocks.first_unit(block)
                for ppn in ftl.blocks.visit_valid(first, first + ftl.blocks.data_units()):
                    if self.split(ftl, ftl.map.owner(ppn)) != (plane, number, ppn - first):
                        raise ValueError(f"unit {ppn} is not of logical block {number} of plane {plane}")

    def blocks(self, ftl: Ftl) -> list[KeptBlock]:
        full, kept = ftl.blocks.data_units(), []
        for state in self.planes:
            kept += [KeptBlock(block, units, is_filled=True) for block, units in state.data.values()]
            if state.log is not None:
                kept.append(KeptBlock(state.log, state.logged, is_filled=state.logged == full))
            if state.merging is not None:
                kept.append(KeptBlock(state.target, state.merged, is_filled=False))
        return kept

    def report(self, ftl: Ftl) -> SchemeReport:
        return SchemeReport(unwritten=self.unwritten)
