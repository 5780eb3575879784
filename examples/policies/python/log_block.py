"""Mapping scheme `toy-log-block`: logical blocks in data blocks, and one log block in each plane.

The log block takes the writes of the host. When it is full, full merges copy each logical block that it has units of
to a free block, and the log block is erased.
"""

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
class Merge:
    """Full merge of a logical block."""

    number: int
    target: int  # its new data block
    sources: dict[int, int]  # addresses of its valid units by their offsets
    units: int = 0  # units of the target that are programmed or bound


@dataclass
class Plane:
    """State of a plane. A block is followed by the number of its units that are programmed or bound."""

    log: int | None = None  # log block
    logged: int = 0
    data: dict[int, tuple[int, int]] = field(default_factory=dict)  # data blocks by the number of the logical block
    merge: Merge | None = None  # merge of a logical block that the full log block has units of
    gather: Gather = field(default_factory=Gather)  # copies of the next program of the merge
    busy: bool = False  # a program, or a read for it, is in flight
    pending: deque[int] = field(default_factory=deque)  # host writes that wait


@fg.policies.register("toy-log-block")
class LogBlock(fg.policies.WholeMap, fg.policies.Unsaved, fg.policies.Mapping):
    def __init__(self) -> None:
        self.planes = [Plane() for _ in range(self.shape.planes)]
        self.unwritten = 0

    def split(self, lpn: int) -> tuple[int, int, int]:
        """Return the plane, the logical block and the offset of a unit."""
        index, plane = divmod(lpn, self.shape.planes)
        number, offset = divmod(index, self.shape.data_units)
        return plane, number, offset

    def go_on(self, cx: Context, plane: int) -> None:
        """Take the next step of a plane: of the merges of a full log block, or towards the next host write."""
        state, blocks = self.planes[plane], cx.ftl.blocks
        if state.busy or not state.pending:
            return
        if state.logged == self.shape.data_units and not self.empty_log(cx, plane):
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
        while state.log is not None:
            if state.merge is None:
                first = blocks.first_unit(state.log)
                unit = blocks.first_valid(first, first + state.logged)
                if unit is None:
                    give_up(cx, state.log, Purpose.FullMerge)
                    state.log, state.logged = None, 0
                    break
                if blocks.free_blocks(plane) == 0:
                    return False  # an erase continues
                self.begin_merge(cx.ftl, plane, unit)
            if self.copy(cx, plane):
                return False  # copies continue
            self.end_merge(cx, plane)
        return True

    def begin_merge(self, ftl: Ftl, plane: int, unit: int) -> None:
        """Open a block for the logical block of a unit, and find the valid units of the logical block, in its data
        block and in the log block.
        """
        state, blocks = self.planes[plane], ftl.blocks
        _, number, _ = self.split(ftl.map.owner(unit))
        state.merge = Merge(number, blocks.open_logical(plane), {})
        for block in (state.log, state.data.get(number, (None, 0))[0]):
            if block is not None:
                first = blocks.first_unit(block)
                for ppn in blocks.visit_valid(first, first + self.shape.data_units):
                    _, owner, offset = self.split(ftl.map.owner(ppn))
                    if owner == number:
                        state.merge.sources[offset] = ppn

    def copy(self, cx: Context, plane: int) -> bool:
        """Read the units of the next program of a merge. Offsets without a valid unit become padding. Return False if
        no unit is left.
        """
        state = self.planes[plane]
        if state.merge is None or max(state.merge.sources) < state.merge.units:
            return False
        state.busy = True
        for offset in range(state.merge.units, state.merge.units + self.shape.units_per_program):
            ppn = state.merge.sources.get(offset)
            if ppn is not None and cx.ftl.blocks.is_valid(ppn):  # no trim has invalidated it
                state.gather.add(cx, (plane, Purpose.FullMerge), ppn)
        if state.gather.is_ready(cx):
            cx.queue(Transaction.copying(Kind.MergeWrite, plane, plane, Purpose.FullMerge))
        return True

    def end_merge(self, cx: Context, plane: int) -> None:
        """Replace the data block of a logical block."""
        state = self.planes[plane]
        if state.merge is None:
            return
        if state.merge.number in state.data:
            old, units = state.data[state.merge.number]
            self.unwritten += self.shape.data_units - units
            give_up(cx, old, Purpose.FullMerge)
        state.data[state.merge.number] = (state.merge.target, state.merge.units)
        state.merge = None

    def changed(self, cx: Context, lpn: int, change: Change) -> None:
        pass

    def place(self, cx: Context, id: int) -> None:
        operation = cx.ops[id]
        assert operation.lpn is not None
        plane = operation.plane = self.split(operation.lpn)[0]
        self.planes[plane].pending.append(id)
        self.go_on(cx, plane)

    def target(self, ftl: Ftl, of: Program) -> Target:
        match of:
            case Program.Write(unit):
                return Target(self.split(unit)[0], Place.Unknown())
            case Program.Copies(plane):
                return Target(plane, Place.Unknown())
        raise TypeError(of)

    def bind(self, cx: Context, id: int) -> Bound | None:
        operation, ftl = cx.ops[id], cx.ftl
        plane, group = operation.plane, self.shape.units_per_program
        assert plane is not None
        state = self.planes[plane]
        merge = state.merge if operation.kind == Kind.MergeWrite else None
        block, units = (state.log, state.logged) if merge is None else (merge.target, merge.units)
        assert block is not None
        first = ftl.blocks.first_unit(block)
        ppn = first + units
        for unit in range(ppn, ppn + group):
            ftl.map.set_owner(unit, PADDING)
        if merge is not None:
            merge.units += group
            state.gather.bind(cx, lambda copy: first + self.split(copy.lpn)[2])  # each at its offset
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
        for kept in keep_found(found, self.unfit):
            plane, number, _ = min(self.units_in(found.ftl, kept))
            self.planes[plane].data[number] = (kept.block, kept.end)

    def units_in(self, ftl: Ftl, found: FoundBlock) -> set[tuple[int, int, bool]]:
        """Return plane and logical block of the newest units in a block, and True if one is at its offset."""
        units = set()
        for place in range(found.end):
            lpn = ftl.newest_at(ftl.blocks.first_unit(found.block) + place)
            if lpn is not None:
                plane, number, offset = self.split(lpn)
                units.add((plane, number, offset == place))
        return units

    def unfit(self, ftl: Ftl, found: list[FoundBlock]) -> FoundMerge | None:
        """Return a merge of a logical block whose units are not alone in one block, each at its offset."""
        seen = set()
        for block in found:
            units = self.units_in(ftl, block)
            plane, number, is_in_place = min(units)
            if len(units) > 1 or not is_in_place or (plane, number) in seen:
                indexes = range(number * self.shape.data_units, (number + 1) * self.shape.data_units)
                lpns = [index * self.shape.planes + plane for index in indexes]
                return FoundMerge([lpn if lpn < len(ftl.map) else None for lpn in lpns], [plane])
            seen.add((plane, number))
        return None

    def recount(self, ftl: Ftl) -> None:
        """Check that data blocks have units of their logical blocks only, each at its offset."""
        for plane, state in enumerate(self.planes):
            for number, (block, _) in state.data.items():
                first = ftl.blocks.first_unit(block)
                for ppn in ftl.blocks.visit_valid(first, first + self.shape.data_units):
                    if self.split(ftl.map.owner(ppn)) != (plane, number, ppn - first):
                        raise ValueError(f"unit {ppn} is not of logical block {number} of plane {plane}")

    def blocks(self, ftl: Ftl) -> list[KeptBlock]:
        kept = []
        for state in self.planes:
            kept += [KeptBlock(block, units, is_filled=True) for block, units in state.data.values()]
            if state.log is not None:
                kept.append(KeptBlock(state.log, state.logged, is_filled=state.logged == self.shape.data_units))
            if state.merge is not None:
                kept.append(KeptBlock(state.merge.target, state.merge.units, is_filled=False))
        return kept

    def report(self, ftl: Ftl) -> SchemeReport:
        return SchemeReport(unwritten=self.unwritten)
