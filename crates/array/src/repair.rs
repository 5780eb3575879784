//! Repair of uncorrectable sectors: their data are computed from other members, and written again.

use floatgate_core::sim::id::RequestId;
use floatgate_core::sim::request::{Operation, Request, Status};

use crate::array::{Purpose, SsdArray};
use crate::layout::Role;
use crate::operation::{Kind, Phase, Segment, Strategy, StripeOp};

impl SsdArray {
    /// Returns `true` if the data of an operation can be computed without its bad members.
    fn can_solve(&self, operation: &StripeOp) -> bool {
        self.layout.survives(|member| self.is_alive(member, operation.row) && !operation.is_bad(member))
    }

    /// Starts the repair of sectors that a read of the host has found uncorrectable on a member. Returns `false` if
    /// they are lost.
    #[inline(never)]
    pub(crate) fn repair(&mut self, id: RequestId, member: u32, read: &Request) -> bool {
        // A part of an uncorrectable unit cannot be written, so whole units are repaired.
        let unit = self.unit_sectors;
        let (row, lo) = self.layout.row_of(read.lba / unit * unit);
        let hi = lo + ((read.lba + u64::from(read.sectors)).next_multiple_of(unit) - read.lba / unit * unit) as u32;
        let Role::Data(index) = self.layout.role(row, member) else { return false };
        if read.operation != Operation::Read {
            return false;
        }
        let segment = Segment { row, lo, hi, first: index, last: index };
        let operation = StripeOp { bad: 1 << member, ..StripeOp::new(id, Kind::Read, segment, self.now) };
        let can_solve = self.can_solve(&operation);
        if can_solve {
            self.requests[id].left += 1;
            self.counts.repairs += 1;
            self.begin(operation);
        }
        can_solve
    }

    /// Reads other members after an operation has found uncorrectable sectors. If the data are lost, the operation
    /// fails, and changes nothing.
    #[inline(never)]
    pub(crate) fn read_again(&mut self, id: u32) {
        let operation = self.operations[id];
        match operation.kind {
            // The rings that were read are used.
            Kind::Scan => return self.end_journal(id),
            // Parity may be wrong, so it cannot replace other sources.
            Kind::Restore => return self.end(id),
            _ if operation.status != Status::Uncorrectable || !self.can_solve(&operation) => return self.end(id),
            _ => {}
        }
        self.counts.repairs += 1;
        let changed = &mut self.operations[id];
        changed.status = Status::Ok;
        changed.strategy = Strategy::ReconstructAll;
        self.read_sources(id);
    }

    /// Writes the computed sectors of bad members again, except for members with a bit in `written`. An operation
    /// without bad members ends.
    pub(crate) fn write_repaired(&mut self, id: u32, written: u64) {
        self.enter_phase(id, Phase::Writing);
        let operation = self.operations[id];
        let bad = operation.bad & !written;
        if bad == 0 && operation.left == 0 {
            return self.end(id);
        }
        for member in (0..self.layout.members()).filter(|member| bad >> member & 1 == 1) {
            self.next_serial();
            self.store_rebuilt(id, member);
            self.issue_part(id, member, Operation::Write, Purpose::Rebuild);
        }
    }

    /// Writes the sectors of bad members that a write of the host does not overwrite.
    #[inline(never)]
    pub(crate) fn repair_others(&mut self, id: u32) {
        let operation = self.operations[id];
        let overwrites = |member: &u32| match self.layout.role(operation.row, *member) {
            Role::Data(index) => operation.covers(index),
            Role::Parity(_) => true,
        };
        let written = (0..self.layout.members()).filter(overwrites).fold(0, |mask, member| mask | 1 << member);
        self.write_repaired(id, written);
    }
}
