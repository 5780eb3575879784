//! Rules for overlapping operations of one execution unit.

use crate::config::advanced::Suspend;
use crate::config::cells::CellMode;
use crate::config::{DeviceConfig, Frontiers};
use crate::nand::timing::Timing;
use crate::sim::time::Time;

/// Kinds of operations that overlap.
#[derive(Clone, Debug)]
pub(crate) struct Overlapping {
    pub(super) read: bool,
    pub(super) program: bool,
    /// True if any operations overlap.
    pub(super) any: bool,
    /// Time without host reads after which programs of the pool are loaded ahead: [`QUIET_PROGRAMS`].
    pub(super) quiet: Time,
    /// Time at which `quiet` has passed since the last host read.
    pub(super) quiet_from: Time,
    /// True if host writes and copies share blocks.
    pub(super) shared: bool,
    pub(super) suspend: Suspend,
}

/// Duration without a host read, in program times, after which pooled writes are loaded ahead. A program with another
/// one loaded after it cannot be suspended, so a read waits for both. Loading ahead saves only the transfer time.
const QUIET_PROGRAMS: u64 = 50;

impl Overlapping {
    pub(crate) fn new(device: &DeviceConfig) -> Overlapping {
        let advanced = &device.nand.advanced;
        Overlapping {
            read: advanced.cache_read,
            program: advanced.cache_program,
            any: device.overlaps(),
            quiet: Time(Timing::new(device).of(CellMode::Native).program(0).0.saturating_mul(QUIET_PROGRAMS)),
            quiet_from: Time::ZERO,
            shared: device.gc.frontiers == Frontiers::Single || device.temperature.classes() > 1,
            suspend: advanced.suspend.clone(),
        }
    }
}
