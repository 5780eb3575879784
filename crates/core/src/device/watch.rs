//! Inspection: samples the state of the device.

use std::ops::Range;

use super::Device;
use crate::ftl::space::Role;
use crate::metrics::series::Sample;
use crate::metrics::summary::FaultState;
use crate::sim::id::PlaneId;
use crate::sim::time::Time;

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
        into.memory = self.buffer().map_or(Time::ZERO, |buffer| buffer.memory_time(at));
        into.cores = self.interface.core_times(at);
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
}
