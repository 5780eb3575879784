//! Phases of stripe operations: read, compute, journal, write.

use floatgate_core::sim::request::{Completion, Operation, Request, SECTOR, Status};
use floatgate_core::sim::time::{Time, transfer_time};

use crate::accept::Piece;
use crate::array::{MemberRequest, Mutant, Purpose, SsdArray};
use crate::operation::{Kind, Phase, Strategy, StripeOp};
use crate::timers::{Owner, Timer};

impl SsdArray {
    /// Starts a stripe operation that waits for no other.
    pub(crate) fn unlocked(&mut self, id: u32) {
        let operation = self.operations[id];
        self.counts.stripe_wait += u128::from(self.now.since(operation.since).ps());
        match operation.kind {
            Kind::Read | Kind::Rebuild(_) => self.read_sources(id),
            Kind::Resync | Kind::Restore => self.read_all(id),
            Kind::Pass if self.has_journal() && self.parities_alive(operation.row).next().is_some() => {
                self.write_journal(id);
            }
            Kind::Pass => self.pass(id),
            Kind::Scan | Kind::Flush => unreachable!("{operation:?} has no lock"),
            Kind::Write => {
                let strategy = self.strategy(&operation);
                self.operations[id].strategy = strategy;
                let writes = &mut self.counts.writes;
                match strategy {
                    Strategy::Plain => {
                        writes.without_parity += u64::from(self.layout.level().parities() > 0);
                        self.write(id);
                    }
                    Strategy::Full => {
                        writes.full_stripe += 1;
                        self.compute(id);
                    }
                    Strategy::Reconstruct => {
                        writes.reconstruct += 1;
                        self.read_rest(id);
                    }
                    Strategy::ReconstructAll => {
                        writes.reconstruct += 1;
                        self.read_sources(id);
                    }
                    Strategy::Modify => {
                        writes.read_modify_write += 1;
                        self.read_old(id);
                    }
                }
            }
        }
    }

    /// Returns the strategy with the fewest reads. At equal numbers, reconstruct-write is preferred, as in md.
    pub(crate) fn strategy(&self, operation: &StripeOp) -> Strategy {
        let parities = self.parities_alive(operation.row).count() as u32;
        if parities == 0 {
            return Strategy::Plain;
        }
        if operation.chunks() == self.layout.data() {
            return Strategy::Full;
        }
        let failed = |index: &u32| !self.is_alive(self.layout.data_member(operation.row, *index, 0), operation.row);
        let failed_inside = (operation.first..=operation.last).any(|index| failed(&index));
        let failed_outside = (0..self.layout.data()).any(|index| !operation.covers(index) && failed(&index));
        let (reconstruct, reads) = if failed_outside {
            (Strategy::ReconstructAll, self.layout.data())
        } else {
            (Strategy::Reconstruct, self.layout.data() - operation.chunks())
        };
        // A journal entry has the data of lost chunks, which a read-modify-write does not read.
        let covered = (operation.first..=operation.last).fold(0, |mask, index| mask | 1 << index);
        let needs_lost = self.has_journal() && self.lost_chunks(operation.row) & !covered != 0;
        let can_modify = !failed_inside && !needs_lost;
        if can_modify && operation.chunks() + parities < reads { Strategy::Modify } else { reconstruct }
    }

    /// Returns the indices and members of the parities of a stripe that are alive.
    pub(crate) fn parities_alive(&self, row: u64) -> impl Iterator<Item = (u32, u32)> + use<> {
        let layout = self.layout;
        let alive: [bool; 2] = std::array::from_fn(|index| {
            (index as u32) < layout.level().parities() && self.is_alive(layout.parity_member(row, index as u32), row)
        });
        (0..2).filter(move |index| alive[*index as usize]).map(move |index| (index, layout.parity_member(row, index)))
    }

    /// Sends a request for the range of a stripe operation to a member.
    pub(crate) fn issue_part(&mut self, id: u32, member: u32, operation: Operation, purpose: Purpose) {
        let of = self.operations[id];
        let lba = self.layout.address(of.row, of.lo);
        self.issue_at(id, member, operation, purpose, (lba, of.sectors()));
    }

    #[inline(never)]
    pub(crate) fn issue_at(&mut self, id: u32, member: u32, operation: Operation, purpose: Purpose, at: (u64, u32)) {
        let of = &mut self.operations[id];
        of.left += 1;
        let (placement, fua, high_priority) = match of.request.get() {
            Some(request) => {
                let Request { placement, fua, high_priority, .. } = self.requests[request].request;
                (placement, fua, high_priority)
            }
            None => (0, false, false),
        };
        let fua = fua || purpose == Purpose::Journal && operation == Operation::Write;
        let owner = Owner::Operation(id).tag();
        let (lba, sectors) = at;
        self.issue(member, MemberRequest { owner, operation, lba, sectors, purpose, placement, fua, high_priority });
    }

    pub(crate) fn enter_phase(&mut self, id: u32, phase: Phase) {
        self.operations[id].phase = phase;
    }

    /// Returns the purpose of the reads of an operation.
    fn reads_for(operation: &StripeOp) -> Purpose {
        if matches!(operation.kind, Kind::Rebuild(_) | Kind::Resync | Kind::Restore) {
            Purpose::Rebuild
        } else {
            Purpose::Parity
        }
    }

    /// Reads as many chunks as the stripe has data: the data that are alive, then parities for the missing ones.
    pub(crate) fn read_sources(&mut self, id: u32) {
        self.enter_phase(id, Phase::Reading);
        let operation = self.operations[id];
        let (row, purpose) = (operation.row, Self::reads_for(&operation));
        if self.layout.copies() > 1 {
            let piece = Piece { row, index: operation.first, offset: 0, sectors: self.layout.chunk() };
            let mut copies = (0..self.layout.copies()).map(|copy| self.layout.data_member(row, piece.index, copy));
            let member = match operation.bad {
                0 => self.reader(&piece),
                _ => copies.find(|member| self.is_usable(&operation, *member)).expect("a copy is left"),
            };
            return self.read_from(id, member, purpose);
        }
        let mut missing = 0;
        for index in 0..self.layout.data() {
            let member = self.layout.data_member(row, index, 0);
            if self.is_usable(&operation, member) { self.read_from(id, member, purpose) } else { missing += 1 }
        }
        for (_, member) in self.parities_alive(row) {
            if missing > 0 && self.is_usable(&operation, member) {
                missing -= 1;
                self.read_from(id, member, purpose);
            }
        }
    }

    /// Returns `true` if an operation may read the chunk of a member. Only reads of the host avoid members.
    fn is_usable(&self, operation: &StripeOp, member: u32) -> bool {
        match operation.kind {
            Kind::Read if operation.bad == 0 => self.is_source(member, operation.row),
            _ => self.is_alive(member, operation.row) && !operation.is_bad(member),
        }
    }

    pub(crate) fn read_from(&mut self, id: u32, member: u32, purpose: Purpose) {
        self.next_serial();
        self.issue_part(id, member, Operation::Read, purpose);
    }

    /// Reads the data that a write does not overwrite.
    fn read_rest(&mut self, id: u32) {
        self.enter_phase(id, Phase::Reading);
        let operation = self.operations[id];
        for index in (0..self.layout.data()).filter(|index| !operation.covers(*index)) {
            self.read_from(id, self.layout.data_member(operation.row, index, 0), Purpose::Parity);
        }
    }

    /// Reads the data that a write overwrites, and the parity.
    fn read_old(&mut self, id: u32) {
        self.enter_phase(id, Phase::Reading);
        let operation = self.operations[id];
        for index in operation.first..=operation.last {
            self.read_from(id, self.layout.data_member(operation.row, index, 0), Purpose::Parity);
        }
        for (_, member) in self.parities_alive(operation.row) {
            self.read_from(id, member, Purpose::Parity);
        }
    }

    /// Queues the computation of an operation at the parity engine, which takes one after the other.
    fn compute(&mut self, id: u32) {
        self.enter_phase(id, Phase::Computing);
        let time = self.compute_time(&self.operations[id]);
        if time == Time::ZERO {
            return self.computed(id);
        }
        self.counts.xor += time;
        self.xor_free = self.xor_free.max(self.now).later(time);
        self.timers.set(self.xor_free, Timer::Computed(id));
    }

    /// Returns the time to compute the parity or the missing data of an operation: the bytes of all inputs of each
    /// block that is computed, divided by the speed of the engine.
    fn compute_time(&self, operation: &StripeOp) -> Time {
        let Some(speed) = self.config.options.xor.filter(|_| self.layout.copies() == 1) else { return Time::ZERO };
        let row = operation.row;
        let data = self.layout.data();
        let failed = |index: &u32| !self.is_alive(self.layout.data_member(row, *index, 0), row);
        let parities = self.parities_alive(row).count() as u32;
        let blocks = match (operation.kind, operation.strategy) {
            // Without a failed chunk, the chunk of an avoided member is computed.
            (Kind::Read, _) => data * (operation.first..=operation.last).filter(failed).count().max(1) as u32,
            (Kind::Rebuild(_), _) => data,
            (Kind::Resync | Kind::Restore, _) => data * parities,
            (Kind::Scan, _) => 0,
            (_, Strategy::Modify) => (2 * operation.chunks() + 1) * parities,
            (_, Strategy::ReconstructAll) => {
                let missing = (0..data).filter(|index| !operation.covers(*index)).filter(failed).count() as u32;
                data * (missing + parities)
            }
            _ => data * parities,
        };
        transfer_time(u64::from(blocks) * u64::from(operation.sectors()) * SECTOR, speed.0)
    }

    /// Continues an operation whose parity or data have been computed.
    pub(crate) fn computed(&mut self, id: u32) {
        match self.operations[id].kind {
            Kind::Read => self.write_repaired(id, 0),
            Kind::Rebuild(member) => self.write_spare(id, member),
            Kind::Resync | Kind::Restore => self.write_resynced(id),
            Kind::Scan => self.end_journal(id),
            _ if self.has_journal() => self.write_journal(id),
            _ => self.write(id),
        }
    }

    /// Writes data and parity to the members that are alive.
    fn write(&mut self, id: u32) {
        self.enter_phase(id, Phase::Writing);
        let operation = self.operations[id];
        let request = self.requests[operation.request].request;
        for index in operation.first..=operation.last {
            for copy in 0..self.layout.copies() {
                let member = self.layout.data_member(operation.row, index, copy);
                if self.is_alive(member, operation.row) {
                    self.next_serial();
                    if self.contents.is_some() && request.operation == Operation::Write {
                        self.store_data(id, index, member);
                    }
                    self.issue_part(id, member, request.operation, Purpose::Host);
                }
            }
        }
        if self.options.mutant == Mutant::ForgetParity && operation.strategy == Strategy::Modify {
            return;
        }
        for (index, member) in self.parities_alive(operation.row) {
            self.next_serial();
            if self.contents.is_some() {
                self.store_parity(id, index, member);
            }
            self.issue_part(id, member, Operation::Write, Purpose::Parity);
        }
        if operation.bad != 0 {
            self.repair_others(id);
        }
    }

    /// Passes a TRIM or a write of zeros for a whole stripe to all members. The parity of zeros is zero.
    fn pass(&mut self, id: u32) {
        self.enter_phase(id, Phase::Writing);
        let operation = self.operations[id];
        let request = self.requests[operation.request].request;
        for member in 0..self.layout.members() {
            if self.is_alive(member, operation.row) {
                self.issue_part(id, member, request.operation, Purpose::Host);
            }
        }
    }

    /// Writes the chunk of a rebuilt stripe to the spare.
    fn write_spare(&mut self, id: u32, member: u32) {
        self.enter_phase(id, Phase::Writing);
        self.next_serial();
        if self.contents.is_some() {
            self.store_rebuilt(id, member);
        }
        let operation = self.operations[id];
        let next = u64::from(self.options.mutant == Mutant::RebuildNext && operation.row + 1 < self.layout.rows());
        let lba = self.layout.address(operation.row + next, operation.lo);
        self.issue_at(id, member, Operation::Write, Purpose::Rebuild, (lba, operation.sectors()));
    }

    /// Ends a request of an operation to a member. The last one ends its phase.
    pub(crate) fn operation_part_done(&mut self, id: u32, member: u32, completion: &Completion) {
        let operation = &mut self.operations[id];
        operation.start = operation.start.min(completion.start);
        if completion.status == Status::Uncorrectable && operation.phase == Phase::Reading {
            operation.bad |= 1 << member;
        }
        if completion.status != Status::Ok {
            operation.status = completion.status;
        }
        operation.left -= 1;
        if operation.left > 0 {
            return;
        }
        match operation.phase {
            Phase::Reading if operation.status != Status::Ok => self.read_again(id),
            Phase::Reading => self.compute(id),
            Phase::Journal if operation.kind == Kind::Pass => self.pass(id),
            Phase::Journal => self.write(id),
            Phase::Writing if operation.kind == Kind::Flush => self.end_journal(id),
            Phase::Writing => self.end(id),
            Phase::Waiting | Phase::Computing => unreachable!("{operation:?} has no request to a member"),
        }
    }

    /// Ends an operation, and starts those that waited for it.
    pub(crate) fn end(&mut self, id: u32) {
        if self.contents.is_some() {
            self.end_contents(id);
        }
        if self.has_journal() {
            self.journal_done(id);
        }
        let mut freed = std::mem::take(&mut self.freed);
        let from = freed.len();
        self.locks.leave(&mut self.operations, id, &mut freed);
        let operation = self.operations.remove(id);
        match operation.kind {
            // The operations that waited have to see that the chunk is valid.
            Kind::Rebuild(member) => self.rebuilt(member, operation.row),
            Kind::Resync => self.resynced(),
            Kind::Restore => self.recovered_one(),
            _ => {}
        }
        for &next in &freed[from..] {
            if self.operations[next].phase == Phase::Waiting {
                self.unlocked(next);
            }
        }
        freed.truncate(from);
        self.freed = freed;
        if operation.request.is_some() {
            self.request_part_done(operation.request, operation.start, operation.status);
        }
    }
}
