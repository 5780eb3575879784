//! Energy of a span of time, by operation: counts of operations times the energy of each, and power times time.
//!
//! Sums are whole femtojoules until they are reported, so that they do not depend on the order of operations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counters::{Counters, ProgramCause, ReadCause};
use crate::config::cells::CellMode;
use crate::config::units::Energy;
use crate::config::{DeviceConfig, Direction};
use crate::sim::time::Time;

/// Number of femtojoules in a joule.
const PER_JOULE: f64 = 1e15;

/// Work of a span of time.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// Counters of the device.
    pub counters: &'a Counters,
    /// Sum of the times in which channels transferred data. It can be negative in a short span.
    pub data: i64,
    /// Length of the span.
    pub span: Time,
}

/// Energy of a span of time in joules, by operation of the flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyUse {
    /// Reads of pages, for any cause.
    pub read_j: f64,
    /// Programs of pages, for any cause. Skipped pages (`flash.programs_by_cause.waste_*`) use none.
    pub program_j: f64,
    /// Erases of blocks.
    pub erase_j: f64,
    /// Data on the channels.
    pub transfer_j: f64,
    /// Power of dies and controller at all times.
    pub static_j: f64,
    /// Sum of all.
    pub total_j: f64,
    /// Mean power in watts; null if the measured time has no length.
    pub mean_w: Option<f64>,
    /// Energy per byte that the host read or wrote; null without such bytes.
    pub per_host_byte_j: Option<f64>,
}

impl EnergyUse {
    /// Returns the energy of a span in which the host read and wrote `bytes`, or `None` if the device states none.
    pub fn new(config: &DeviceConfig, work: &Work, bytes: u64) -> Option<EnergyUse> {
        let parts = parts(config, work)?;
        let [read_j, program_j, erase_j, transfer_j, static_j] = parts.map(|part| part as f64 / PER_JOULE);
        let total_j = parts.iter().sum::<u128>() as f64 / PER_JOULE;
        Some(EnergyUse {
            read_j,
            program_j,
            erase_j,
            transfer_j,
            static_j,
            total_j,
            mean_w: (work.span > Time::ZERO).then(|| total_j / work.span.as_s()),
            per_host_byte_j: (bytes > 0).then(|| total_j / bytes as f64),
        })
    }
}

/// Returns the energies of reads, programs, erases, transfers and static power in femtojoules, or `None` if the device
/// states none.
fn parts(config: &DeviceConfig, work: &Work) -> Option<[u128; 5]> {
    let energy = config.energy?;
    let Work { counters, data, span } = *work;
    // A page of a synchronous gang is a page of each of its packages.
    let packages = u128::from(config.packages_per_page());
    let [read, programmed] = pages_by_mode(config, counters);
    let programs = [CellMode::Native, CellMode::Slc].map(|cells| {
        // A mapping unit that spans pages takes a program for each page.
        let size = config.block_size(cells);
        u64::from(if config.pages_per_unit() > 1 { 1 } else { size.program_pages })
    });
    let of = |[native, slc]: [u64; 2], of_native: Energy, of_slc: Option<Energy>| {
        let of_slc = of_slc.unwrap_or(of_native);
        packages * (u128::from(native) * u128::from(of_native.0) + u128::from(slc) * u128::from(of_slc.0))
    };
    let programs = [programmed[0] / programs[0], programmed[1] / programs[1]];
    let erases = [counters.blocks_erased, 0];
    let bytes_per_s = u128::from(config.channel_bandwidth(Direction::Out));
    let geometry = &config.geometry;
    let dies = u128::from(geometry.channels) * u128::from(geometry.chips) * u128::from(geometry.dies);
    let power = u128::from(energy.controller.0) + dies * u128::from(energy.die.0);
    Some([
        of(read, energy.read, energy.slc_read),
        of(programs, energy.program, energy.slc_program),
        of(erases, energy.erase, None),
        data.max(0) as u128 * bytes_per_s * u128::from(energy.transfer.0) / 1_000_000_000_000,
        // Nanowatts times picoseconds are 1e-21 J.
        power * u128::from(span.0) / 1_000_000,
    ])
}

/// Returns the numbers of pages read, and of pages programmed, in native and in SLC mode. Skipped pages are not
/// programmed.
fn pages_by_mode(config: &DeviceConfig, counters: &Counters) -> [[u64; 2]; 2] {
    let of_map = |pages: u64| if config.map_cells().is_native() { 0 } else { pages };
    let skipped = [ProgramCause::WasteCopyback, ProgramCause::WasteAlignment];
    let skipped: u64 = skipped.map(|cause| counters.pages_programmed[cause as usize]).iter().sum();
    let slc_read = counters.slc.pages_read + of_map(counters.pages_read[ReadCause::Map as usize]);
    let slc_programmed = counters.slc.pages_programmed + of_map(counters.pages_programmed[ProgramCause::Map as usize]);
    let programmed = counters.pages_programmed_total() - skipped;
    [[counters.pages_read_total() - slc_read, slc_read], [programmed - slc_programmed, slc_programmed]]
}
