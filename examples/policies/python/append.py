"""Mapping scheme `append-log`: the scheme of `src/append.rs` in Python.

Each plane appends host writes to one block. When free blocks are few, it copies the valid units of the block that has
the fewest, and erases that block.
"""

from collections import deque

import floatgate as fg
from floatgate.policies import (
    PADDING,
    Bound,
    Ended,
    Gather,
    KeptBlock,
    Kind,
    OperationClass,
    Place,
    Program,
    ProgramCause,
    Purpose,
    SchemeReport,
    Target,
    Transaction,
    give_up,
    keep_found,
)


class Plane:
    """State of a plane."""

    def __init__(self):
        self.open = None  # block that is filled
        self.next = 0  # number of its units that are programmed or bound
        self.victim = None  # block that is being emptied
        self.gather = Gather()  # copies of the next program
        self.busy = False  # a program, or a read for it, is in flight
        self.pending = deque()  # host writes that wait


@fg.policies.register("append-log")
class AppendLog(fg.policies.WholeMap, fg.policies.Unsaved, fg.policies.Mapping):
    def __init__(self):
        self.planes = [Plane() for _ in range(self.shape.planes)]

    def go_on(self, cx, plane):
        """Take the next step of a plane: towards the copies of a victim, or towards the next host write."""
        state, blocks = self.planes[plane], cx.ftl.blocks
        if state.busy:
            return
        if state.open is None or state.next == blocks.data_units():
            if blocks.free_blocks(plane) == 0:
                return  # an erase continues
            state.open, state.next = blocks.open_logical(plane), 0
        while (victim := self.victim(cx.ftl, plane)) is not None:
            first = blocks.first_unit(victim)
            valid = blocks.visit_valid(first, first + blocks.data_units(), cx.ftl.shape.units_per_program)
            if valid:
                state.victim = victim
                for ppn in valid:
                    state.gather.add(cx, (plane, Purpose.Merge), ppn)
                state.busy = not state.gather.is_ready(cx)
                return
            state.victim = None
            give_up(cx, victim, Purpose.Merge)
        if state.pending:
            state.busy = True
            cx.enqueue(state.pending.popleft())

    def victim(self, ftl, plane):
        """Return the block that is being emptied, or choose one if too few blocks are free or await their erase."""
        state, blocks = self.planes[plane], ftl.blocks
        if state.victim is not None:
            return state.victim
        coming = sum(blocks.plane_of(block) == plane for block in blocks.awaiting_erase())
        if blocks.free_blocks(plane) + coming >= ftl.shape.soft:
            return None
        others = [block for block in blocks.logical() if blocks.plane_of(block) == plane and block != state.open]
        return min(others, key=lambda block: blocks.block(block).valid, default=None)

    def changed(self, cx, lpn, change):
        pass

    def place(self, cx, id):
        operation = cx.ops[id]
        plane = operation.plane = operation.lpn % len(self.planes)
        self.planes[plane].pending.append(id)
        self.go_on(cx, plane)

    def target(self, ftl, of):
        number = of.lpn if isinstance(of, Program.Write) else of.number
        return Target(number % len(self.planes), Place.Unknown())

    def bind(self, cx, id):
        operation = cx.ops[id]
        plane = operation.plane
        state, ftl, group = self.planes[plane], cx.ftl, cx.ftl.shape.units_per_program
        ppn = ftl.blocks.first_unit(state.open) + state.next
        for unit in range(ppn, ppn + group):
            ftl.map.set_owner(unit, PADDING)
        state.next += group
        if operation.kind == Kind.MergeWrite:
            state.gather.bind_from(cx, ppn)
            ftl.note_program(ProgramCause.Merge, len(state.gather))
            return Bound(OperationClass.GC, plane, ppn)
        writes = [id] + [state.pending.popleft() for _ in range(min(group - 1, len(state.pending)))]
        for offset, write in enumerate(writes):
            cx.bind(write, ppn + offset)
            cx.ops[write].next = writes[offset + 1] if offset + 1 < len(writes) else None
        ftl.note_program(ProgramCause.Host, len(writes))
        return Bound(OperationClass.HOST_PROGRAM, plane, ppn)

    def ended(self, cx, end):
        match end:
            case Ended.Writes(ppn=start) | Ended.Copies(ppn=start):
                plane = cx.ftl.blocks.plane_of(cx.ftl.blocks.block_of(start))
                state = self.planes[plane]
                state.gather.end(cx)
                state.busy = False
                cx.program_ended(start)
            case Ended.Erase(plane):
                pass
            case Ended.CopyRead(plane):
                if self.planes[plane].gather.read_ended():
                    cx.queue(Transaction.copying(Kind.MergeWrite, plane, plane, Purpose.Merge))
                return True
            case _:
                return True
        self.go_on(cx, plane)
        return True

    def step(self, cx, step):
        pass

    def recover(self, found):
        keep_found(found, lambda ftl, blocks: None)

    def recount(self, ftl):
        pass

    def blocks(self, ftl):
        opened, full = {state.open: state.next for state in self.planes}, ftl.blocks.data_units()
        for block in ftl.blocks.logical():
            units = opened.get(block, full)
            yield KeptBlock(block, units, is_filled=units == full)

    def report(self, ftl):
        return SchemeReport()
