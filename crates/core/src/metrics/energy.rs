//! Energy of a span of time, by operation: counts of operations times the energy of each, and power times time.
//!
//! Sums are whole femtojoules until they are reported, so that they do not depend on the order of operations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counters::{Counters, EraseCause, ProgramCause, ReadCause};
use crate::config::cells::CellMode;
use crate::config::energy::EnergyConfig;
use crate::config::units::Energy;
use crate::config::{DeviceConfig, Direction};
use crate::sim::time::Time;

/// Number of femtojoules in a joule.
const PER_JOULE: f64 = 1e15;
/// Causes of pages that are skipped, and use no energy.
const SKIPPED: [ProgramCause; 2] = [ProgramCause::WasteCopyback, ProgramCause::WasteAlignment];

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

/// Requests and their data that a span of time has served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Served {
    /// Bytes that the host read or wrote.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
}

/// Energy of reads, programs and erases in joules, by cause. An erase has the cause for which the data of its block
/// were moved. The sum is that of `read_j`, `program_j` and `erase_j`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyCauses {
    /// Reads and writes of the host, reads of partial writes, and reads ahead.
    pub host_j: f64,
    /// Garbage collection.
    pub gc_j: f64,
    /// Wear leveling.
    pub wear_j: f64,
    /// Merges of logical blocks.
    pub merge_j: f64,
    /// Folding of the SLC cache.
    pub fold_j: f64,
    /// Refresh.
    pub refresh_j: f64,
    /// Reads and programs of rebuilds of uncorrectable pages.
    pub rebuild_j: f64,
    /// Translation pages.
    pub map_j: f64,
    /// Summaries, parity, and records of the device itself.
    pub own_j: f64,
    /// Pages of padding.
    pub padding_j: f64,
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
    /// Energy per request of the host; null without requests.
    #[serde(default)]
    pub per_request_j: Option<f64>,
    /// Energy of reads, programs and erases, by cause.
    #[serde(default)]
    pub by_cause: EnergyCauses,
}

impl EnergyUse {
    /// Returns the energy of a span, or `None` if the device states none.
    pub fn new(config: &DeviceConfig, work: &Work, served: Served) -> Option<EnergyUse> {
        let cells = Cells { config, energy: config.energy.as_ref()?, counters: work.counters };
        let [read, program, erase] = cells.by_operation();
        let parts = [read, program, erase, cells.transfers(work.data), cells.at_all_times(work.span)];
        let [read_j, program_j, erase_j, transfer_j, static_j] = parts.map(joules);
        let total_j = joules(parts.iter().sum());
        let per = |count: u64| (count > 0).then(|| total_j / count as f64);
        Some(EnergyUse {
            read_j,
            program_j,
            erase_j,
            transfer_j,
            static_j,
            total_j,
            mean_w: (work.span > Time::ZERO).then(|| total_j / work.span.as_s()),
            per_host_byte_j: per(served.bytes),
            per_request_j: per(served.requests),
            by_cause: cells.by_cause(),
        })
    }
}

/// Converts femtojoules to joules.
fn joules(femto: u128) -> f64 {
    femto as f64 / PER_JOULE
}

/// Energy of the operations of a device, in femtojoules.
struct Cells<'a> {
    config: &'a DeviceConfig,
    energy: &'a EnergyConfig,
    counters: &'a Counters,
}

impl Cells<'_> {
    /// Returns the energies of all reads, programs and erases.
    fn by_operation(&self) -> [u128; 3] {
        let Counters { pages_read, pages_programmed, slc, .. } = self.counters;
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        let skipped: u64 = SKIPPED.map(|cause| pages_programmed[cause as usize]).iter().sum();
        let read_in_slc = sum(&slc.pages_read) + self.in_slc(pages_read[ReadCause::Map as usize]);
        let programmed_in_slc = sum(&slc.pages_programmed) + self.in_slc(pages_programmed[ProgramCause::Map as usize]);
        let reads = [sum(pages_read).saturating_sub(read_in_slc), read_in_slc];
        let native = sum(pages_programmed).saturating_sub(skipped + programmed_in_slc);
        let programs = [native, programmed_in_slc];
        [self.reads(reads), self.programs(programs), self.erases(self.counters.blocks_erased)]
    }

    /// Returns the energies by cause.
    fn by_cause(&self) -> EnergyCauses {
        use {EraseCause as Erase, ProgramCause as Program, ReadCause as Read};
        let read = |cause| {
            let [all, slc] = [&self.counters.pages_read, &self.counters.slc.pages_read].map(|of| of[cause as usize]);
            let slc = slc + if cause == Read::Map { self.in_slc(all) } else { 0 };
            self.reads([all.saturating_sub(slc), slc])
        };
        let program = |cause| {
            let Counters { pages_programmed, slc, .. } = self.counters;
            let [all, slc] = [pages_programmed, &slc.pages_programmed].map(|of| of[cause as usize]);
            let slc = slc + if cause == Program::Map { self.in_slc(all) } else { 0 };
            self.programs([all.saturating_sub(slc), slc])
        };
        let moves = |of: Read, to: Program, by: Erase| {
            joules(read(of) + program(to) + self.erases(self.counters.erases[by as usize]))
        };
        let own = [Program::Summary, Program::Parity, Program::Journal, Program::Checkpoint].map(program);
        EnergyCauses {
            host_j: joules(read(Read::Host) + read(Read::Rmw) + read(Read::Ahead) + program(Program::Host)),
            gc_j: moves(Read::Gc, Program::Gc, Erase::Gc),
            wear_j: moves(Read::Wear, Program::Wear, Erase::Wear),
            merge_j: moves(Read::Merge, Program::Merge, Erase::Merge),
            fold_j: moves(Read::Fold, Program::Fold, Erase::Fold),
            refresh_j: moves(Read::Refresh, Program::Refresh, Erase::Refresh),
            rebuild_j: joules(read(Read::Rebuild) + program(Program::Rebuild)),
            map_j: moves(Read::Map, Program::Map, Erase::Map),
            own_j: joules(own.iter().sum()),
            padding_j: joules(program(Program::Padding)),
        }
    }

    /// Returns the number of translation pages that are in SLC mode, of `pages`.
    fn in_slc(&self, pages: u64) -> u64 {
        if self.config.map_cells().is_native() { 0 } else { pages }
    }

    /// Returns the energy of page reads in native and in SLC mode.
    fn reads(&self, pages: [u64; 2]) -> u128 {
        self.of(pages, [self.energy.read, self.energy.slc_read.unwrap_or(self.energy.read)], [1, 1])
    }

    /// Returns the energy of the programs of pages in native and in SLC mode.
    fn programs(&self, pages: [u64; 2]) -> u128 {
        let of_program = [CellMode::Native, CellMode::Slc].map(|cells| {
            // A mapping unit that spans pages takes a program for each page.
            let size = self.config.block_size(cells);
            let pages = if self.config.pages_per_unit() > 1 { 1 } else { size.program_pages };
            u64::from(pages / self.config.planes_together())
        });
        self.of(pages, [self.energy.program, self.energy.slc_program.unwrap_or(self.energy.program)], of_program)
    }

    fn erases(&self, blocks: u64) -> u128 {
        self.of([blocks * u64::from(self.config.planes_together()), 0], [self.energy.erase; 2], [1, 1])
    }

    /// Returns the energy of operations on some pages each. A page of a synchronous gang is a page of each package.
    fn of(&self, pages: [u64; 2], energies: [Energy; 2], pages_each: [u64; 2]) -> u128 {
        let of_mode =
            |mode: usize| u128::from(pages[mode]) * u128::from(energies[mode].0) / u128::from(pages_each[mode]);
        u128::from(self.config.packages_per_page()) * (of_mode(0) + of_mode(1))
    }

    /// Returns the energy of transfers, which took the time `data` on all channels.
    fn transfers(&self, data: i64) -> u128 {
        let bytes_per_s = u128::from(self.config.channel_bandwidth(Direction::Out));
        data.max(0) as u128 * bytes_per_s * u128::from(self.energy.transfer.0) / 1_000_000_000_000
    }

    /// Returns the energy of the power of dies and controller in a span of time.
    fn at_all_times(&self, span: Time) -> u128 {
        let geometry = &self.config.geometry;
        let dies = u128::from(geometry.channels) * u128::from(geometry.chips) * u128::from(geometry.dies);
        let power = u128::from(self.energy.controller.0) + dies * u128::from(self.energy.die.0);
        // Nanowatts times picoseconds are 1e-21 J.
        power * u128::from(span.0) / 1_000_000
    }
}
