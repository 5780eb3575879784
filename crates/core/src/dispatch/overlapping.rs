//! Which operations of one execution unit overlap.

use crate::config::advanced::Suspend;
use crate::config::cells::CellMode;
use crate::config::{DeviceConfig, Frontiers};
use crate::nand::timing::Timing;
use crate::sim::time::Time;

/// Which operations overlap.
#[derive(Clone, Debug)]
pub(crate) struct Overlapping {
    pub(super) read: bool,
    pub(super) program: bool,
    /// Whether anything overlaps at all.
    pub(super) any: bool,
    /// Time without host reads after which programs of the pool are loaded ahead: [`QUIET_PROGRAMS`].
    pub(super) quiet: Time,
    /// Time at which `quiet` has passed since the last host read.
    pub(super) quiet_from: Time,
    /// Writes of the host go to the blocks of copies.
    pub(super) shared: bool,
    pub(super) suspend: Suspend,
}

/// Program times without a host read after which pooled writes are loaded ahead. A program with another one loaded
/// behind it cannot be suspended, so that a read waits for both; what that gains is the time of the transfer.
const QUIET_PROGRAMS: u64 = 50;

impl Overlapping {
    pub(crate) fn new(device: &DeviceConfig) -> Overlapping {
        let advanced = &device.nand.advanced;
        Overlapping {
            read: advanced.cache_read,
            program: advanced.cache_program,
            any: advanced.overlaps(),
            quiet: Time(Timing::new(device).of(CellMode::Native).program(0).0.saturating_mul(QUIET_PROGRAMS)),
            quiet_from: Time::ZERO,
            shared: device.gc.frontiers == Frontiers::Single || device.temperature.classes() > 1,
            suspend: advanced.suspend.clone(),
        }
    }
}
