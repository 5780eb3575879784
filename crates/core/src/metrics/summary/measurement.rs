//! What a summary is made of.

use super::FaultState;
use crate::config::DeviceConfig;
use crate::metrics::bounds::Work;
use crate::metrics::counters::{BufferCounts, ClassCounts, Counters};
use crate::metrics::profile::Profile;
use crate::metrics::results::Results;
use crate::nand::array::{ChannelTime, DieTime};
use crate::nand::parallel::Parallel;
use crate::sim::request::Operation;
use crate::sim::time::Time;

/// What the controller did in the measured time, beside what the device counts anyway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerWork {
    /// What the buffer counted.
    pub buffer: BufferCounts,
    /// Units that a power cut would have lost: when the last request was answered, and at most until then.
    pub volatile_units: (u64, u64),
    /// Time for which the port of the memory worked.
    pub memory: Time,
    /// Time for which each core worked.
    pub cores: Vec<Time>,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measurement<'a> {
    /// The device.
    pub config: &'a DeviceConfig,
    /// Whether the workload came to its end.
    pub complete: bool,
    /// What the host saw.
    pub results: &'a Results,
    /// The requests in their order, where that was looked at.
    pub profile: Option<&'a Profile>,
    /// What the device counted.
    pub counters: &'a Counters,
    /// The same by class of units, where classes are told apart.
    pub classes: &'a [ClassCounts],
    /// Commands that made several planes or dies work together.
    pub parallel: &'a Parallel,
    /// First arrival to last completion.
    pub measured: Time,
    /// From the start of the measured part to the last completion.
    pub elapsed: Time,
    /// Time spent, by channel.
    pub channels: &'a [ChannelTime],
    /// Time spent, by die.
    pub dies: &'a [DieTime],
    /// Time for which each LUN worked; empty where operations cannot overlap.
    pub luns: &'a [Time],
    /// What the controller did.
    pub controller: &'a ControllerWork,
    /// Erases since birth, by block.
    pub erases: Vec<u32>,
    /// What has failed, where anything does.
    pub faults: Option<FaultState>,
}

impl Measurement<'_> {
    /// What the device's resources had to do.
    pub fn work(&self) -> Work<'_> {
        let bytes = [Operation::Write, Operation::Read].map(|operation| self.results.of(operation).bytes);
        let Measurement { config, counters, channels, dies, luns, .. } = *self;
        let ControllerWork { memory, cores, .. } = self.controller;
        Work { config, counters, channels, dies, luns, bytes, memory: *memory, cores }
    }
}
