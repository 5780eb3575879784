//! Derived values: numbers that follow from the device file.

use std::borrow::Cow;

use super::cells::{BlockSize, CellMode};
use super::checkpoint::Parts;
use super::errors::RefreshConfig;
use super::units::Duration;
use super::{
    BlockSummary, BufferConfig, BusProtocol, Capacity, Concurrency, DeviceConfig, Direction, ExternalConfig,
    InjectedFault, WearOut, WritePolicy,
};
use crate::cache::eviction::EvictionConfig;
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::gc::trigger::TriggerConfig;
use crate::ftl::gc::victim::VictimConfig;
use crate::ftl::gc::wear::WearConfig;
use crate::ftl::mapping::MappingConfig;
use crate::ftl::temperature::TemperatureConfig;
use crate::host::arbitration::ArbitrationConfig;
use crate::scheduler::SchedulerConfig;
use crate::sim::time::{Time, transfer_time};

impl DeviceConfig {
    /// Returns the policies that other programs supply, with the paths of their keys.
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

    /// Returns the names of the built-in policies of a family, given the path of its key, such as `gc.victim`.
    pub fn builtin_policies(path: &str) -> &'static [&'static str] {
        match path {
            "allocation" => AllocationConfig::NAMES,
            "gc.trigger" => TriggerConfig::NAMES,
            "gc.victim" => VictimConfig::NAMES,
            "gc.wear" => WearConfig::NAMES,
            "mapping.scheme" => MappingConfig::NAMES,
            "buffer.eviction" => EvictionConfig::NAMES,
            "host.queues.arbitration" => ArbitrationConfig::NAMES,
            "scheduler" => SchedulerConfig::NAMES,
            "temperature" => TemperatureConfig::NAMES,
            _ => &[],
        }
    }

    /// Returns `true` if the plane of a write is known before the write is queued.
    pub fn allocates_statically(&self) -> bool {
        matches!(self.allocation, AllocationConfig::Static(_))
    }

    /// Returns the level at which the number in `place` is out of range, and the number of elements at that level.
    /// Returns `None` if the place exists.
    pub fn lacks(&self, place: &InjectedFault) -> Option<(&'static str, u32)> {
        let numbers = [
            ("planes", place.plane, self.total_planes()),
            ("blocks", place.block, self.geometry.blocks),
            ("pages", place.page, self.pages_per_block()),
        ];
        let beyond = |&(_, number, count): &(_, Option<u32>, u32)| number.is_some_and(|number| number >= count);
        numbers.into_iter().find(beyond).map(|(name, _, count)| (name, count))
    }

    /// Returns the number of planes in the device.
    pub fn total_planes(&self) -> u32 {
        let g = &self.geometry;
        self.channels() * g.chips * g.dies * self.planes_per_die()
    }

    /// Returns the number of planes in a package.
    pub fn planes_per_package(&self) -> u32 {
        let g = &self.geometry;
        g.chips_per_package * g.dies * self.planes_per_die()
    }

    /// Returns the number of planes in a LUN, the level that takes one command at a time (`nand.concurrency`).
    pub fn planes_per_lun(&self) -> u32 {
        let g = &self.geometry;
        match self.nand.concurrency {
            Concurrency::Plane => 1,
            Concurrency::PlanePair => g.planes.min(2),
            Concurrency::Die | Concurrency::PlaneReads => self.planes_per_die(),
            Concurrency::Command => g.dies * g.planes,
            Concurrency::Chip => self.planes_per_package() * self.channels_per_lun(),
        }
    }

    /// Returns the number of planes in an execution unit: those of a die, 2 if pairs of planes are independent, or 1 if
    /// planes are.
    pub fn planes_per_unit(&self) -> u32 {
        match self.nand.concurrency {
            Concurrency::Plane => 1,
            Concurrency::PlanePair => self.geometry.planes.min(2),
            _ => self.planes_per_die(),
        }
    }

    /// Returns the number of operations that a die executes at the same time.
    pub fn lanes_per_die(&self) -> u32 {
        self.planes_together() * self.planes_per_die() / self.planes_per_unit()
    }

    /// Returns the number of planes in a die that can share a command.
    pub fn planes_per_group(&self) -> u32 {
        let pairs = self.nand.advanced.plane_pairs || self.nand.concurrency == Concurrency::PlanePair;
        if pairs { 2 } else { self.planes_per_die() }
    }

    /// Returns the number of blocks in the device.
    pub fn total_blocks(&self) -> u32 {
        self.total_planes() * self.geometry.blocks
    }

    /// Returns the bytes of a mapping unit.
    pub fn unit_bytes(&self) -> u64 {
        let unit = self.geometry.mapping_unit.map_or_else(|| self.geometry.page_size.0.min(4096), |u| u.0);
        unit * u64::from(self.packages_per_page())
    }

    /// Returns the number of mapping units in a flash page; 1 if a unit spans pages.
    pub fn units_per_page(&self) -> u32 {
        (self.page_bytes() / self.unit_bytes()).max(1) as u32
    }

    /// Returns the number of mapping units in a logical page; 1 without logical pages.
    pub fn units_per_logical_page(&self) -> u32 {
        self.geometry.logical_page.map_or(1, |page| (page.0 / self.unit_bytes()).max(1) as u32)
    }

    /// Returns the number of consecutive mapping units that go to the same plane or pool: those of a flash page, or of
    /// a stripe of static allocation.
    pub fn units_per_stripe(&self) -> u32 {
        let stripe = match &self.allocation {
            AllocationConfig::Static(options) => options.stripe.map_or(1, |stripe| stripe.0 / self.unit_bytes()),
            _ => 1,
        };
        self.units_per_page().max(stripe as u32)
    }

    /// Returns the number of stripes of the host's address space, each of [`DeviceConfig::units_per_stripe`] units.
    pub fn stripes(&self) -> u32 {
        self.logical_units().div_ceil(u64::from(self.units_per_stripe())) as u32
    }

    /// Returns the number of flash pages that a mapping unit spans; 1 if it is at most a page.
    pub fn pages_per_unit(&self) -> u32 {
        (self.unit_bytes() / self.page_bytes()).max(1) as u32
    }

    /// Returns the number of mapping units that one program command fills; 1 if a unit takes several commands.
    pub fn units_per_program(&self) -> u32 {
        self.block_size(CellMode::Native).program_units
    }

    /// Returns the number of mapping units in a block, including its summary.
    pub fn units_per_block(&self) -> u32 {
        self.block_size(CellMode::Native).units
    }

    /// Returns the number of mapping units of data in a block, without its summary.
    pub fn data_units_per_block(&self) -> u32 {
        self.block_size(CellMode::Native).data_units
    }

    /// Returns the capacity of a block in a cell mode. In SLC mode, a block has the pages of one page type.
    pub fn block_size(&self, cells: CellMode) -> BlockSize {
        let bits = match cells {
            CellMode::Native => 1,
            CellMode::Slc => self.nand.cell.bits(),
        };
        let program_pages = (self.geometry.pages_per_program / bits).max(1).saturating_mul(self.planes_together());
        // The checks, which refuse products that are too large, need this function themselves.
        let program_units = self.units_per_page().saturating_mul(program_pages);
        let units = (self.pages_per_block() / bits / self.pages_per_unit()).saturating_mul(self.units_per_page());
        let summary = match self.mapping.block_summary {
            BlockSummary::None => 0,
            BlockSummary::LastPage(_) => program_units,
        };
        let data_units = units.saturating_sub(summary);
        let program_pages = program_pages.saturating_mul(self.pages_per_unit());
        BlockSize { units, data_units, program_units, program_pages }
    }

    /// Returns the capacities of blocks of data, of translation pages, of the SLC cache, and of parity.
    pub fn block_sizes(&self) -> [BlockSize; 4] {
        [CellMode::Native, self.map_cells(), CellMode::Slc, CellMode::Native].map(|cells| self.block_size(cells))
    }

    /// Returns the cell mode of the blocks of translation pages.
    pub fn map_cells(&self) -> CellMode {
        self.mapping.scheme.needs(self).translation.map_or(CellMode::Native, |translation| translation.cells)
    }

    /// Returns `true` if the mapping scheme merges blocks, in place of garbage collection by victims.
    pub fn merges_blocks(&self) -> bool {
        self.mapping.scheme.needs(self).whole_blocks.is_some()
    }

    /// Returns the options of refresh, if blocks are refreshed.
    pub fn refresh(&self) -> Option<RefreshConfig> {
        self.errors.as_ref()?.refresh
    }

    /// Returns the kinds of log blocks of the mapping scheme; none if it has no log blocks.
    pub fn log_kinds(&self) -> &'static [&'static str] {
        self.mapping.scheme.needs(self).whole_blocks.map_or(&[], |whole| whole.logs)
    }

    /// Returns the buffer, if there is one.
    pub fn active_buffer(&self) -> Option<&BufferConfig> {
        self.buffer.as_ref().filter(|buffer| buffer.capacity.0 > 0)
    }

    /// Returns `true` if a buffer completes writes before their data are in flash.
    pub fn writes_back(&self) -> bool {
        self.active_buffer().is_some_and(|buffer| buffer.write == WritePolicy::WriteBack)
    }

    /// Returns the number of mapping units that the buffer holds; 0 without a buffer. It is limited to the logical
    /// units, because more entries would stay empty.
    pub fn buffer_units(&self) -> u32 {
        let capacity = self.buffer.as_ref().map_or(0, |buffer| buffer.capacity.0);
        (capacity / self.unit_bytes()).min(self.logical_units()) as u32
    }

    /// Returns the number of sectors in a mapping unit.
    pub fn sectors_per_unit(&self) -> u32 {
        (self.unit_bytes() / 512) as u32
    }

    /// Returns the bytes of the whole flash array, without spare bytes.
    pub fn physical_bytes(&self) -> u64 {
        u64::from(self.total_blocks()) * u64::from(self.pages_per_block()) * self.page_bytes()
    }

    /// Returns the number of mapping units that the host sees.
    pub fn logical_units(&self) -> u64 {
        let bytes = match self.capacity {
            Capacity::Spare(spare) => {
                // Shares are decimal numbers of a few digits, so billionths are exact and the same on every machine.
                let kept = 1_000_000_000 - (spare * 1e9 + 0.5) as u64;
                (u128::from(self.physical_bytes()) * u128::from(kept) / 1_000_000_000) as u64
            }
            Capacity::Logical(size) => size.0,
        };
        let units = bytes / self.unit_bytes();
        units - units % self.units_per_tile()
    }

    /// Returns the number of mapping units in the smallest range that is whole units and whole logical blocks.
    pub(super) fn units_per_tile(&self) -> u64 {
        // The size of a logical block is a power of two.
        let sector = self.host.sector_size.0;
        (sector >> self.unit_bytes().trailing_zeros().min(sector.trailing_zeros())).max(1)
    }

    /// Returns the number of trim records that a mapping unit of the journal holds: 12 bytes each, after 4 bytes with
    /// their number.
    pub fn journal_room(&self) -> u64 {
        (self.unit_bytes() - 4) / 12
    }

    /// Returns the number of mapping units of the trim journal, in addition to those of the host. It has room for two
    /// records per unit of the host.
    pub fn journal_units(&self) -> u64 {
        self.journal_units_for(self.logical_units())
    }

    /// Returns the number of mapping units of the trim journal if the host sees `units` of them.
    pub(super) fn journal_units_for(&self, units: u64) -> u64 {
        if self.durability.trim_journal { (2 * units).div_ceil(self.journal_room()) } else { 0 }
    }

    /// Returns the number of mapping units of the checkpoint, whose addresses follow those of the journal.
    pub fn checkpoint_units(&self) -> u64 {
        self.durability.checkpoint.map_or(0, |_| u64::from(Parts::of(self).count()))
    }

    /// Returns the number of mapping units of a map that backup power writes to flash: an account of each block, as in
    /// a checkpoint.
    pub fn saved_map_units(&self) -> u64 {
        u64::from(Parts::of(self).count())
    }

    /// Returns the number of mapping units that belong to the device if the host sees `units` of them.
    pub(super) fn own_units_for(&self, units: u64) -> u64 {
        self.journal_units_for(units) + self.checkpoint_units()
    }

    /// Returns the maximum number of blocks for these units in `planes` consecutive planes, with a mapping scheme that
    /// merges blocks. All planes together have twice as many as the units fill, and two more.
    ///
    /// The units of a block are copied in whole programs, which gains space only if they take fewer programs than a
    /// block has. So a block of one program has to be without units.
    pub fn own_blocks(&self, planes: u32) -> u32 {
        let units = self.own_units_for(self.logical_units());
        let data = u64::from(self.data_units_per_block()).max(1);
        let gaining = units / (data - u64::from(self.units_per_program()).min(data) + 1);
        let full = (2 * units.div_ceil(data)).max(gaining);
        let all = u64::from(self.total_planes().max(1));
        let count = if units > 0 { full + 2 } else { 0 };
        let count = count / all * u64::from(planes) + (count % all).min(u64::from(planes));
        count.min(1 << 30) as u32
    }

    /// Returns the number of mapping units that the device maps: those of the host and its own.
    pub fn mapped_units(&self) -> u64 {
        self.logical_units() + self.own_units_for(self.logical_units())
    }

    /// Returns the number of bytes that the host sees.
    pub fn logical_bytes(&self) -> u64 {
        self.logical_units() * self.unit_bytes()
    }

    /// Returns the number of sectors that the host sees.
    pub fn logical_sectors(&self) -> u64 {
        self.logical_bytes() / 512
    }

    /// Returns the over-provisioning as a share of the flash: (physical - logical) / physical.
    pub fn spare(&self) -> f64 {
        1.0 - self.logical_bytes() as f64 / self.physical_bytes() as f64
    }

    /// Returns the over-provisioning as vendors define it: (physical - logical) / logical.
    pub fn over_provisioning(&self) -> f64 {
        self.physical_bytes() as f64 / self.logical_bytes() as f64 - 1.0
    }

    /// Returns the number of erases that a block endures; 0 if unknown.
    pub fn endurance(&self) -> u32 {
        self.nand.endurance.unwrap_or(self.nand.cell.usual_endurance())
    }

    /// Returns the number of erases after which a block that is closed is never collected again, if there is one.
    pub fn excluded_after(&self) -> Option<u32> {
        let excludes = self.faults.as_ref().is_some_and(|faults| faults.wear_out == WearOut::Exclude);
        excludes.then(|| self.endurance())
    }

    /// Returns the time of a data cycle of an SDR bus, whose protocol has `cycle`.
    fn cycle(&self, cycle: Duration, direction: Direction) -> u64 {
        let own = match direction {
            Direction::In => self.bus.write_cycle,
            Direction::Out => self.bus.read_cycle,
        };
        own.unwrap_or(cycle).0
    }

    /// Returns the bandwidth of a channel in bytes per second.
    pub fn channel_bandwidth(&self, direction: Direction) -> u64 {
        let bytes_per_cycle = u64::from(self.bus.width / 8) * u64::from(self.packages_per_page());
        match self.bus.protocol {
            BusProtocol::Sdr(cycle) => bytes_per_cycle * 1_000_000_000_000 / self.cycle(cycle, direction).max(1),
            BusProtocol::NvDdr(rate) => bytes_per_cycle * rate.0,
        }
    }

    /// Returns the time of `bytes` of a page on the channel, including their share of the spare bytes if these are
    /// transferred.
    pub fn data_time(&self, bytes: u64, direction: Direction) -> Time {
        let (page, spare) = (self.page_bytes(), self.spare_bytes());
        let spare = if self.bus.transfer_spare { (bytes * spare).div_ceil(page) } else { 0 };
        self.raw_data_time(bytes + spare, direction)
    }

    /// Returns the time of exactly `bytes` on the channel.
    pub fn raw_data_time(&self, bytes: u64, direction: Direction) -> Time {
        let cycles = bytes.div_ceil(u64::from(self.bus.width / 8) * u64::from(self.packages_per_page()));
        match self.bus.protocol {
            BusProtocol::Sdr(cycle) => Time(cycles * self.cycle(cycle, direction)),
            BusProtocol::NvDdr(rate) => transfer_time(cycles, rate.0),
        }
    }

    /// Returns the time of `cycles` command or address cycles.
    pub fn command_time(&self, cycles: u32) -> Time {
        let cycle = match (self.bus.command_cycle, self.bus.protocol) {
            (Some(cycle), _) => cycle.0,
            (None, BusProtocol::Sdr(cycle)) => self.cycle(cycle, Direction::In),
            (None, BusProtocol::NvDdr(rate)) => 1_000_000_000_000u64.div_ceil(rate.0.max(1)),
        };
        Time(u64::from(cycles) * cycle)
    }
}
