//! Health of the device, as the SMART log page reports it.

use floatgate_core::results::Counters;
use floatgate_core::sim::request::{Operation, SECTOR};

use crate::engine::{Engine, Totals};
use floatgate_array::AnySsd;

/// Bit of the critical warning: spare blocks are below the threshold.
pub const SPARE_LOW: u8 = 1;

/// Bit of the critical warning: reliability is degraded.
pub const DEGRADED: u8 = 1 << 2;

/// Bit of the critical warning: the device is read-only.
pub const READ_ONLY: u8 = 1 << 3;

/// Spare blocks in percent below which the device warns.
pub const SPARE_THRESHOLD: u8 = 10;

/// Bytes of a data unit.
const DATA_UNIT: u64 = 1000 * SECTOR;

/// Health of the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Critical warnings.
    pub warning: u8,
    /// Spare blocks that are not bad, in percent of the blocks beyond the logical capacity.
    pub spare: u8,
    /// Erases of the most erased block, in percent of the endurance. At most 255.
    pub used: u8,
    /// Data that hosts have read and written, in thousands of 512 bytes, rounded up.
    pub units: [u64; 2],
    /// Read commands, including Compare and Verify, and write commands.
    pub commands: [u64; 2],
    /// Simulated time in hours.
    pub hours: u64,
    /// Starts of the device.
    pub power_cycles: u64,
    /// Power cuts.
    pub unsafe_shutdowns: u64,
    /// Uncorrectable reads, and units whose data was lost.
    pub media_errors: u64,
    /// Bytes that were programmed, including garbage collection.
    pub programmed: u64,
}

/// Returns the critical warnings. Runs each second, and takes no longer for more blocks.
pub fn warning(device: &AnySsd) -> u8 {
    let is_low = spare(device) < SPARE_THRESHOLD;
    let read_only = device.read_only_since().is_some();
    (u8::from(is_low) * SPARE_LOW) | (u8::from(read_only) * (READ_ONLY | DEGRADED))
}

/// Returns the spare blocks that are not bad, in percent of the blocks beyond the logical capacity.
fn spare(device: &AnySsd) -> u8 {
    let of = |device: &floatgate_core::simulation::Device| {
        let config = device.config();
        let blocks = u64::from(config.total_planes()) * u64::from(config.geometry.blocks);
        let per_block = config.physical_bytes() / blocks.max(1);
        let spare = blocks - config.logical_bytes().div_ceil(per_block.max(1)).min(blocks);
        let bad = device.ftl().fault_state().map_or(0, |state| state.bad.iter().map(|bad| u64::from(*bad)).sum());
        [spare, spare.saturating_sub(bad)]
    };
    let [all, left] = device.devices().map(of).fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
    (left * 100).checked_div(all).map_or(100, |share| share as u8)
}

/// Returns the erases of the most erased block, in percent of the endurance. 0 if the endurance is unknown. Reads the
/// state of all blocks.
pub fn used(device: &AnySsd) -> u8 {
    let of = |device: &floatgate_core::simulation::Device| {
        let most = device.ftl().blocks.all().iter().map(|block| block.erases).max().unwrap_or(0);
        (u64::from(most) * 100).checked_div(u64::from(device.config().endurance())).unwrap_or(0).min(255) as u8
    };
    device.devices().map(of).max().unwrap_or(0)
}

/// Adds up counters of all devices.
fn counted(engine: &Engine, count: impl Fn(&Counters) -> u64) -> u64 {
    engine.device().devices().map(|device| count(&device.ftl().counters)).sum()
}

impl Health {
    /// Returns the health of the device, given its percentage used (see [`used`]).
    pub fn of(engine: &Engine, used: u8) -> Health {
        let device = engine.device();
        let served = engine.served();
        let of = |operation: Operation| served[operation.index()];
        let [read, write] = [of(Operation::Read), of(Operation::Write)];
        let zeroed = of(Operation::WriteZeroes);
        let unit = device.config().unit_bytes();
        Health {
            warning: warning(device),
            spare: spare(device),
            used,
            units: [read, write].map(|Totals { bytes, .. }| bytes.div_ceil(DATA_UNIT)),
            commands: [read.count, write.count + zeroed.count],
            hours: device.now().as_s() as u64 / 3600,
            power_cycles: 1 + engine.power_cuts(),
            unsafe_shutdowns: engine.power_cuts(),
            media_errors: counted(engine, |counters| {
                counters.faults.uncorrectable.iter().sum::<u64>() + counters.errors.uncorrectable
            }),
            programmed: counted(engine, |counters| counters.units_programmed) * unit,
        }
    }
}
