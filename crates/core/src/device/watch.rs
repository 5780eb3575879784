//! What observers are told: what waits, what has been granted, and what the device is like at an instant.

use super::Device;
use super::transaction::Kind;
use crate::metrics::series::Sample;
use crate::nand::array::Operation;
use crate::nand::probe::{Lane, Phase, Slice};
use crate::scheduler::lines::NONE;
use crate::sim::id::{PlaneId, Ppn};
use crate::sim::time::Time;

impl Device {
    /// What the device is like at `at`; everything up to then has happened, and nothing later. The requests in
    /// progress are the caller's to add.
    pub fn sample(&self, at: Time, into: &mut Sample) {
        let planes = self.config.total_planes();
        let stock = |plane| self.ftl.blocks.stock(PlaneId(plane));
        into.at = at;
        into.counters = self.ftl.counters;
        into.stock_min = (0..planes).map(stock).min().unwrap_or(0);
        into.stock_sum = (0..planes).map(|plane| u64::from(stock(plane))).sum();
        self.array.time_until(at, &mut into.channels, &mut into.dies);
    }

    /// Tells an observer that a transaction waits.
    #[inline]
    pub(super) fn show_lined_up(&mut self, id: u32) {
        if let Some(probe) = &mut self.array.probe {
            probe.lined_up(id, self.now);
        }
    }

    /// Tells an observer what has waited for the operation that starts now: each write of a program command, or the
    /// transaction itself.
    #[cold]
    pub(super) fn show_wait(&mut self, first: u32, operation: &Operation) {
        let mut id = first;
        while id != NONE {
            let (waited, transaction) = (id, self.transactions[id]);
            let mut slice = Slice::of(Lane::Plane(operation.plane.0), Phase::Wait, self.now, self.now, operation);
            slice.lpn = match transaction.kind {
                Kind::Erase | Kind::Summary | Kind::SlotRead => NONE,
                _ => self.ftl.map.owner(Ppn(transaction.place)),
            };
            if transaction.kind == Kind::Write {
                slice.tag = self.requests[transaction.owner].request.tag;
                slice.place = transaction.place;
                id = transaction.next;
            } else {
                id = NONE;
            }
            if let Some(probe) = &mut self.array.probe {
                probe.granted(waited, slice);
            }
        }
    }
}
