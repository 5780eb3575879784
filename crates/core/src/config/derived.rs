//! Numbers that follow from the device file.

use std::borrow::Cow;

use super::cells::{BlockSize, CellMode};
use super::checkpoint::Parts;
use super::{BlockSummary, BufferConfig, BusProtocol, Capacity, Concurrency, DeviceConfig, InjectedFault};
use crate::cache::eviction::EvictionConfig;
use crate::external::ExternalConfig;
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::gc::trigger::TriggerConfig;
use crate::ftl::gc::victim::VictimConfig;
use crate::ftl::gc::wear::WearConfig;
use crate::ftl::mapping::MappingConfig;
use crate::ftl::temperature::TemperatureConfig;
use crate::scheduler::SchedulerConfig;
use crate::sim::time::{Time, transfer_time};

impl DeviceConfig {
    /// The policies that are not the simulator's own, with the paths of their keys.
    pub fn externals(&self) -> Vec<(&'static str, Cow<'_, ExternalConfig>)> {
        let mut found = Vec::new();
        if let AllocationConfig::External(config) = &self.allocation {
            found.push(("allocation", Cow::Borrowed(config)));
        }
        if let TriggerConfig::External(config) = &self.gc.trigger {
            found.push(("gc.trigger", Cow::Borrowed(config)));
        }
        if let WearConfig::External(config) = &self.gc.wear {
            found.push(("gc.wear", Cow::Borrowed(config)));
        }
        if let VictimConfig::External(config) = &self.gc.victim {
            found.push(("gc.victim", Cow::Borrowed(config)));
        }
        if let Some(EvictionConfig::External(config)) = self.buffer.as_ref().map(|buffer| &buffer.eviction) {
            found.push(("buffer.eviction", Cow::Borrowed(config)));
        }
        if let MappingConfig::External(config) = &self.mapping.scheme {
            found.push(("mapping.scheme", Cow::Borrowed(config)));
        }
        if let SchedulerConfig::External(config) = &self.scheduler {
            found.push(("scheduler", Cow::Borrowed(config)));
        }
        if let TemperatureConfig::External(config) = &self.temperature {
            found.push(("temperature", Cow::Owned(config.policy())));
        }
        found
    }

    /// Returns what the device has too little of for a place of a fault, and how many it has.
    pub fn lacks(&self, place: &InjectedFault) -> Option<(&'static str, u32)> {
        let numbers = [
            ("planes", place.plane, self.total_planes()),
            ("blocks", place.block, self.geometry.blocks),
            ("pages", place.page, self.geometry.pages),
        ];
        let beyond = |&(_, number, count): &(_, Option<u32>, u32)| number.is_some_and(|number| number >= count);
        numbers.into_iter().find(beyond).map(|(name, _, count)| (name, count))
    }

    /// Planes of the device.
    pub fn total_planes(&self) -> u32 {
        let g = &self.geometry;
        g.channels * g.chips * g.dies * g.planes
    }

    /// Planes of what takes one command at a time (`nand.concurrency`), here called a LUN.
    pub fn planes_per_lun(&self) -> u32 {
        let g = &self.geometry;
        match self.nand.concurrency {
            Concurrency::Plane => 1,
            Concurrency::Die => g.planes,
            Concurrency::Command => g.dies * g.planes,
            Concurrency::Chip => g.chips_per_package * g.dies * g.planes,
        }
    }

    /// Planes of what executes one operation at a time: a die, or a plane where planes are independent.
    pub fn planes_per_unit(&self) -> u32 {
        if self.nand.concurrency == Concurrency::Plane { 1 } else { self.geometry.planes }
    }

    /// Blocks of the device.
    pub fn total_blocks(&self) -> u32 {
        self.total_planes() * self.geometry.blocks
    }

    /// Bytes of a mapping unit.
    pub fn unit_bytes(&self) -> u64 {
        self.geometry.mapping_unit.map_or_else(|| self.geometry.page_size.0.min(4096), |u| u.0)
    }

    /// Mapping units in a flash page; 1 where a unit spans pages.
    pub fn units_per_page(&self) -> u32 {
        (self.geometry.page_size.0 / self.unit_bytes()).max(1) as u32
    }

    /// Flash pages that a mapping unit spans; 1 where it is a page or a share of one.
    pub fn pages_per_unit(&self) -> u32 {
        (self.unit_bytes() / self.geometry.page_size.0).max(1) as u32
    }

    /// Mapping units that one program command fills, or the one unit that several of them do.
    pub fn units_per_program(&self) -> u32 {
        self.block_size(CellMode::Native).program_units
    }

    /// Mapping units that fit in a block, its summary included.
    pub fn units_per_block(&self) -> u32 {
        self.block_size(CellMode::Native).units
    }

    /// Mapping units of data in a block: without its summary.
    pub fn data_units_per_block(&self) -> u32 {
        self.block_size(CellMode::Native).data_units
    }

    /// Returns what a block holds in a cell mode. With one bit of each cell, that is the pages of one page type.
    pub fn block_size(&self, cells: CellMode) -> BlockSize {
        let bits = match cells {
            CellMode::Native => 1,
            CellMode::Slc => self.nand.cell.bits(),
        };
        let program_pages = (self.geometry.pages_per_program / bits).max(1);
        let program_units = self.units_per_page() * program_pages;
        let units = self.geometry.pages / bits / self.pages_per_unit() * self.units_per_page();
        let summary = match self.mapping.block_summary {
            BlockSummary::None => 0,
            BlockSummary::LastPage(_) => program_units,
        };
        let data_units = units.saturating_sub(summary);
        BlockSize { units, data_units, program_units, program_pages: program_pages * self.pages_per_unit() }
    }

    /// Returns what blocks of data and blocks of translation pages hold.
    pub fn block_sizes(&self) -> [BlockSize; 2] {
        [CellMode::Native, self.map_cells()].map(|cells| self.block_size(cells))
    }

    /// Returns the cell mode of the blocks of translation pages.
    pub fn map_cells(&self) -> CellMode {
        self.mapping.scheme.needs(self).translation.map_or(CellMode::Native, |translation| translation.cells)
    }

    /// The buffer, if there is one.
    pub fn active_buffer(&self) -> Option<&BufferConfig> {
        self.buffer.as_ref().filter(|buffer| buffer.capacity.0 > 0)
    }

    /// Mapping units that the buffer holds; 0 without one. More than there are would hold nothing.
    pub fn buffer_units(&self) -> u32 {
        let capacity = self.buffer.as_ref().map_or(0, |buffer| buffer.capacity.0);
        (capacity / self.unit_bytes()).min(self.logical_units()) as u32
    }

    /// Sectors of a mapping unit.
    pub fn sectors_per_unit(&self) -> u32 {
        (self.unit_bytes() / 512) as u32
    }

    /// Bytes of the whole flash array, without spare bytes.
    pub fn physical_bytes(&self) -> u64 {
        u64::from(self.total_blocks()) * u64::from(self.geometry.pages) * self.geometry.page_size.0
    }

    /// Mapping units that the host sees.
    pub fn logical_units(&self) -> u64 {
        let bytes = match self.capacity {
            Capacity::Spare(spare) => {
                // Shares are decimal numbers of a few digits: exact in billionths, the same on every machine.
                let kept = 1_000_000_000 - (spare * 1e9 + 0.5) as u64;
                (u128::from(self.physical_bytes()) * u128::from(kept) / 1_000_000_000) as u64
            }
            Capacity::Logical(size) => size.0,
        };
        bytes / self.unit_bytes()
    }

    /// Records of trims that a mapping unit of the journal holds: of 12 bytes, behind their number.
    pub fn journal_room(&self) -> u64 {
        (self.unit_bytes() - 4) / 12
    }

    /// Mapping units of the journal of trims, beside those of the host: with room for two records for each of these.
    pub fn journal_units(&self) -> u64 {
        self.journal_units_for(self.logical_units())
    }

    /// The same of a device whose host sees so many units.
    pub(super) fn journal_units_for(&self, units: u64) -> u64 {
        if self.durability.trim_journal { (2 * units).div_ceil(self.journal_room()) } else { 0 }
    }

    /// Mapping units of the checkpoint, behind those of the journal.
    pub fn checkpoint_units(&self) -> u64 {
        self.durability.checkpoint.map_or(0, |_| u64::from(Parts::of(self).count()))
    }

    /// The device's own mapping units, where the host sees so many.
    pub(super) fn own_units_for(&self, units: u64) -> u64 {
        self.journal_units_for(units) + self.checkpoint_units()
    }

    /// Mapping units that the device maps: the host's and its own.
    pub fn mapped_units(&self) -> u64 {
        self.logical_units() + self.own_units_for(self.logical_units())
    }

    /// Bytes that the host sees.
    pub fn logical_bytes(&self) -> u64 {
        self.logical_units() * self.unit_bytes()
    }

    /// Sectors that the host sees.
    pub fn logical_sectors(&self) -> u64 {
        self.logical_bytes() / 512
    }

    /// Spare share: (physical - logical) / physical.
    pub fn spare(&self) -> f64 {
        1.0 - self.logical_bytes() as f64 / self.physical_bytes() as f64
    }

    /// The vendor's figure for over-provisioning: (physical - logical) / logical.
    pub fn over_provisioning(&self) -> f64 {
        self.physical_bytes() as f64 / self.logical_bytes() as f64 - 1.0
    }

    /// Erases that a block stands; 0 when unknown.
    pub fn endurance(&self) -> u32 {
        self.nand.endurance.unwrap_or(self.nand.cell.usual_endurance())
    }

    /// Bytes per second that a channel carries.
    pub fn channel_bandwidth(&self) -> u64 {
        let bytes_per_cycle = u64::from(self.bus.width / 8);
        match &self.bus.protocol {
            BusProtocol::Sdr(cycle) => bytes_per_cycle * 1_000_000_000_000 / cycle.0.max(1),
            BusProtocol::NvDdr(rate) => bytes_per_cycle * rate.0,
        }
    }

    /// The time that `bytes` of a page take on the channel, with their share of the spare bytes where those count.
    pub fn data_time(&self, bytes: u64) -> Time {
        let g = &self.geometry;
        let spare = if self.bus.transfer_spare { (bytes * g.spare_size.0).div_ceil(g.page_size.0) } else { 0 };
        self.raw_data_time(bytes + spare)
    }

    /// The time that exactly `bytes` take on the channel.
    pub fn raw_data_time(&self, bytes: u64) -> Time {
        let cycles = bytes.div_ceil(u64::from(self.bus.width / 8));
        match &self.bus.protocol {
            BusProtocol::Sdr(cycle) => Time(cycles * cycle.0),
            BusProtocol::NvDdr(rate) => transfer_time(cycles, rate.0),
        }
    }

    /// The time of `cycles` command or address cycles.
    pub fn command_time(&self, cycles: u32) -> Time {
        let cycle = match (&self.bus.command_cycle, &self.bus.protocol) {
            (Some(cycle), _) | (None, BusProtocol::Sdr(cycle)) => cycle.0,
            (None, BusProtocol::NvDdr(rate)) => 1_000_000_000_000u64.div_ceil(rate.0.max(1)),
        };
        Time(u64::from(cycles) * cycle)
    }
}
