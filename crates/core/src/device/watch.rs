//! Observation: reports queued and granted operations to observers and probes, and samples the state of the device.

use std::ops::Range;

use super::Device;
use crate::ftl::space::Role;
use crate::metrics::series::Sample;
use crate::metrics::summary::FaultState;
use crate::nand::array::{self, Operation};
use crate::nand::probe::{Lane, Phase, Slice};
use crate::sim::id::{LunId, PlaneId, TransactionId};
use crate::sim::time::Time;
use crate::work::Kind;

impl Device {
    /// Samples the state of the device at `at`. All events up to then, and no later ones, must have been processed. The
    /// caller adds the outstanding requests.
    pub fn sample(&self, at: Time, into: &mut Sample) {
        let planes = self.config.total_planes();
        let free_blocks = |plane| self.ftl.blocks.free_blocks(PlaneId(plane), Role::Data);
        into.at = at;
        into.counters = self.ftl.counters;
        into.classes.clear();
        into.classes.extend(self.ftl.classes.iter().flat_map(|classes| classes.counts()));
        into.parallel.copy_from(&self.array.parallel);
        into.free_blocks_min = (0..planes).map(free_blocks).min().unwrap_or(0);
        into.free_blocks_sum = (0..planes).map(|plane| u64::from(free_blocks(plane))).sum();
        let has_logs = !self.config.log_kinds().is_empty();
        into.trim_list = if has_logs { self.ftl.scheme().report(&self.ftl).listed_trims } else { 0 };
        let bad = |faults: &FaultState| faults.bad.iter().map(|bad| u64::from(*bad)).sum();
        into.bad_blocks = self.ftl.fault_state().as_ref().map_or(0, bad);
        into.read_only = self.ftl.is_read_only();
        into.buffer = self.buffer().map_or_else(Default::default, |buffer| buffer.counts);
        into.buffer_units = self.buffer().map_or([0, 0], |buffer| buffer.occupancy());
        into.volatile_units = self.buffer().map_or((0, 0), |buffer| buffer.volatile_units());
        into.memory = self.memory_time(at);
        into.cores = self.core_times(at);
        self.array.time_until(at, &mut into.channels, &mut into.dies);
        self.array.busy_until(at, &mut into.luns);
        self.jobs.counts_until(at, &mut into.collections);
        self.dispatch.sample_queues(at, &mut into.queues);
        into.pools.clone_from(&self.ftl.pool_units);
    }

    /// Appends the kinds of a range of blocks, if the mapping scheme has log blocks: see
    /// [`KeptBlock::kind`](crate::ftl::mapping::KeptBlock).
    pub fn copy_kinds(&self, blocks: Range<usize>, into: &mut Vec<u8>) {
        if self.config.log_kinds().is_empty() {
            return;
        }
        let first = into.len();
        into.resize(first + blocks.len(), 0);
        self.ftl.scheme().blocks(&self.ftl, &mut |kept| {
            if blocks.contains(&kept.block.index()) {
                into[first + kept.block.index() - blocks.start] = kept.kind;
            }
        });
    }

    /// Starts to search for the longest queues again, at the start of a measurement.
    pub fn reset_queues(&mut self) {
        self.dispatch.reset_queues();
    }

    #[inline(never)]
    pub(super) fn show_enqueue(&mut self, id: TransactionId, lun: LunId) {
        let Device { observers, array, transactions, now, .. } = self;
        if let Some(observers) = observers {
            observers.enqueued(transactions, array, id, lun, *now);
        }
        self.show_enqueued(id);
    }

    /// Reports a queued transaction to the probe, and to a scheduler that picks transactions.
    #[inline(always)]
    pub(super) fn show_enqueued(&mut self, id: TransactionId) {
        if self.array.records_queued() {
            self.record_enqueued(id);
        }
    }

    #[inline(never)]
    fn record_enqueued(&mut self, id: TransactionId) {
        self.dispatch.note_arrival(id, self.now);
        if let Some(probe) = self.array.probe_mut() {
            probe.enqueued(id, self.now);
        }
    }

    /// Reports to the probe the waits of the transactions whose operation starts now: the writes of a program, or a
    /// single transaction.
    #[inline(never)]
    pub(super) fn show_waits(&mut self, first: TransactionId, operation: &Operation) {
        let mut id = first;
        while id.is_some() {
            let waited = id;
            let transaction = self.transactions[id];
            let mut slice = Slice::of(Lane::Plane(transaction.plane.0), Phase::Wait, self.now, self.now, operation);
            slice.lpn = match transaction.kind {
                Kind::Erase | Kind::Summary | Kind::SlotRead | Kind::MapRead | Kind::MapWrite | Kind::MergeWrite => {
                    u32::MAX
                }
                _ => self.ftl.map.owner(transaction.ppn),
            };
            // Each plane of a multi-plane operation has a transaction of its own.
            slice.plane = transaction.plane.0;
            match transaction.kind {
                Kind::Write | Kind::HostRead => slice.tag = self.interface.tag_of(transaction.request()),
                Kind::RmwRead => slice.tag = self.interface.tag_of(self.transactions[transaction.write()].request()),
                _ => {}
            }
            if array::Kind::from(transaction.kind) == array::Kind::Read
                || matches!(transaction.kind, Kind::Write | Kind::Erase)
            {
                slice.ppn = transaction.ppn.0;
            }
            id = transaction.next;
            if let Some(probe) = self.array.probe_mut() {
                probe.granted(waited, slice);
            }
        }
    }
}
