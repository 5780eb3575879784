//! Measurement: the data from which a summary is built.

use super::FaultState;
use crate::config::DeviceConfig;
use crate::metrics::bounds::Work;
use crate::metrics::collections::CollectionCounts;
use crate::metrics::counters::{BufferCounts, ClassCounts, Counters, PoolUnits};
use crate::metrics::profile::Profile;
use crate::metrics::results::Results;
use crate::nand::array::{ChannelTime, DieTime};
use crate::nand::gauge::QueueSample;
use crate::nand::parallel::Parallel;
use crate::sim::request::Operation;
use crate::sim::time::Time;

/// Work of the controller in the measured time, in addition to the counters of the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerWork {
    /// Counters of the buffer.
    pub buffer: BufferCounts,
    /// Units that a power cut would have lost: at the last completion, and the maximum until then.
    pub volatile_units: (u64, u64),
    /// Time for which the memory port worked.
    pub memory: Time,
    /// Time for which each core worked.
    pub cores: Vec<Time>,
}

/// Data of a run from which its summary is built.
#[derive(Clone, Debug)]
pub struct Measurement<'a> {
    /// Device.
    pub config: &'a DeviceConfig,
    /// True if the workload ran to its end. If the run was interrupted, requests issued before that were completed and
    /// are included.
    pub complete: bool,
    /// Latencies and counts of requests.
    pub results: &'a Results,
    /// Profile of the requests, if it was collected.
    pub profile: Option<&'a Profile>,
    /// Counters of the device.
    pub counters: &'a Counters,
    /// Counters by data class; empty if classes are not distinguished.
    pub classes: &'a [ClassCounts],
    /// Multi-plane and interleaved commands.
    pub parallel: &'a Parallel,
    /// Time from the first arrival to the last completion.
    pub measured: Time,
    /// Time from the start of the measured part to the last completion.
    pub elapsed: Time,
    /// Busy times of the channels, indexed by channel.
    pub channels: &'a [ChannelTime],
    /// Busy times of the dies, indexed by die.
    pub dies: &'a [DieTime],
    /// Time for which each LUN worked; empty if operations cannot overlap.
    pub luns: &'a [Time],
    /// Collections of blocks.
    pub collections: &'a CollectionCounts,
    /// Free blocks of all planes at the end, less those at the start.
    pub free_blocks_gained: i64,
    /// Queues, indexed by gang; empty without gangs.
    pub queues: &'a [QueueSample],
    /// Units programmed, indexed by pool of the allocation; empty if there is one pool.
    pub pools: &'a [PoolUnits],
    /// Length of the list of trimmed units at the end: in flash, and not yet skipped by a merge.
    pub trim_list: u64,
    /// Work of the controller.
    pub controller: &'a ControllerWork,
    /// Erases since the device was new, indexed by block.
    pub erases: Vec<u32>,
    /// Faults; `None` if nothing can fail.
    pub faults: Option<FaultState>,
}

impl Measurement<'_> {
    /// Returns the work of the device's resources.
    pub fn work(&self) -> Work<'_> {
        let of = |operation| self.results.of(operation).bytes;
        let [written, read] = self.results.carried_over;
        let bytes = [of(Operation::Write) - written, of(Operation::Read) - read];
        let Measurement { config, counters, channels, dies, luns, .. } = *self;
        let ControllerWork { memory, cores, .. } = self.controller;
        Work { config, counters, channels, dies, luns, bytes, memory: *memory, cores }
    }
}
