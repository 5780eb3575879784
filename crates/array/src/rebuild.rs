//! Rebuild: restores the chunks of failed members on spares, stripe by stripe.
//!
//! Stripes are rebuilt one after the other. The reads and the write of a stripe compete with requests of the host at
//! the members, and its lock with their stripe operations. The spare serves all stripes that were rebuilt.

use floatgate_core::sim::id::RequestId;
use floatgate_core::sim::request::SECTOR;
use floatgate_core::sim::time::transfer_time;

use crate::array::SsdArray;
use crate::layout::Role;
use crate::operation::{Kind, Segment, StripeOp};
use crate::progress::Rebuilding;
use crate::timers::Timer;

impl SsdArray {
    /// Starts the rebuild, if there is one.
    pub(crate) fn start_rebuild(&mut self) {
        if self.rebuilding.is_some() {
            self.timers.set(self.now, Timer::Rebuild);
        }
    }

    /// Rebuilds the next stripe.
    pub(crate) fn rebuild_next(&mut self) {
        let Some(Rebuilding { at, row, .. }) = self.rebuilding.filter(|_| !self.is_recovering()) else { return };
        let member = self.config.options.failed[at];
        let index = match self.layout.role(row, member) {
            Role::Data(index) => index,
            Role::Parity(_) => 0,
        };
        let segment = Segment { first: index, last: index, ..Segment::whole(&self.layout, row) };
        self.begin(StripeOp::new(RequestId::NONE, Kind::Rebuild(member), segment, self.now));
    }

    /// Notes that a stripe was rebuilt, and sets the time of the next one. Stripe k starts when its chunk is due at the
    /// rate of the rebuild, counted from its start.
    pub(crate) fn rebuilt(&mut self, member: u32, row: u64) {
        self.members[member as usize].valid_rows = row + 1;
        let rows = self.layout.rows();
        let Some(rebuilding) = &mut self.rebuilding else { return };
        rebuilding.done += 1;
        rebuilding.row = row + 1;
        if rebuilding.row == rows {
            (rebuilding.at, rebuilding.row) = (rebuilding.at + 1, 0);
        }
        if rebuilding.at == self.config.options.failed.len() {
            rebuilding.finished = Some(self.now);
            self.is_degraded = false;
            return;
        }
        let bytes = rebuilding.done * u64::from(self.layout.chunk()) * SECTOR;
        let due = rebuilding.since.later(transfer_time(bytes, rebuilding.rate));
        self.timers.set(due.max(self.now), Timer::Rebuild);
    }
}
