//! Checks of the whole device: ranges, and values that contradict one another.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use super::advanced::{Advanced, Waste};
use super::cells::CellMode;
use super::error::{ConfigError, Problem};
use super::limits::{MAX_SLOTS, MAX_UNITS, MAX_UNITS_PER_BLOCK, MAX_UNITS_PER_PROGRAM};
use super::schema::Schema;
use super::units::{BlockCount, Bytes, Duration, OneOrMany};
use super::{
    BlockSummary, Burst, BusProtocol, Capacity, Concurrency, DeviceConfig, FaultsConfig, Firmware, Frontiers, GcPace,
    GcScope, MapMemory, WearOut, WritePolicy,
};
use crate::ftl::allocation::{AllocationConfig, StaticConfig};

/// Maximum number of planes of a die, and of dies of a chip, that work together: sets of them are one word. Real parts
/// have a few.
const MAX_MERGED: u32 = 64;

/// Maximum bytes of a page, far above those of any real part. A synchronous gang is one chip with many times the page
/// size (Agrawal et al. 2008, Section 3.3).
pub(super) const MAX_PAGE: u64 = 16 << 20;
/// Maximum bytes of a logical page or stripe.
const MAX_STRIPE: u64 = 16 << 20;
/// Maximum cost of a step of the firmware. It is longer than any real step, and the work of the longest request ends
/// before the clock does.
const MAX_COST: Duration = Duration(1_000_000_000);

impl DeviceConfig {
    /// Checks all values, each by itself and against the others. The error has all problems that were found.
    ///
    /// Some values may be too far out of range to compute others from them. The others are then not checked.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut check = Check { device: self, problems: Vec::new() };
        check.nand();
        check.bus();
        check.controller();
        let so_far = check.problems.len();
        check.ranges();
        check.geometry();
        check.mapping_unit();
        if check.problems.len() == so_far {
            check.sizes();
        }
        if check.problems.len() == so_far {
            check.fill_timeout();
            check.block();
            check.slc_mode();
            check.energy(self);
            check.slc_cache(self);
            check.capacity();
        }
        // Schemes that merge blocks need some for units of the device itself. Their number depends on the capacity.
        if check.problems.len() == so_far {
            check.logical_page();
            check.copy_back_modify();
        }
        if check.problems.len() == so_far {
            check.durability();
            check.faults();
            check.errors(self);
            check.pools();
            check.superblock(self);
            check.thresholds();
            check.buffer();
            check.temperature();
            check.policies();
        }
        if check.problems.is_empty() { Ok(()) } else { Err(ConfigError::Refused(check.problems)) }
    }
}

pub(super) struct Check<'a> {
    device: &'a DeviceConfig,
    problems: Vec<Problem>,
}

impl Check<'_> {
    pub(super) fn refuse(&mut self, path: &str, value: impl Display, what: &str) {
        self.problems.push(Problem::new(path, format!("{path} = {value}: {what}")));
    }

    pub(super) fn in_range<T: Display + PartialOrd>(
        &mut self,
        path: &str,
        value: T,
        range: RangeInclusive<T>,
        why: &str,
    ) {
        if !range.contains(&value) {
            let (least, most) = range.into_inner();
            self.refuse(path, value, &format!("must be from {least} to {most}: {why}"));
        }
    }

    /// Checks all values against the ranges in their attributes, which are in the schema of a device file as well.
    fn ranges(&mut self) {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::new);
        let values = serde_json::to_value(self.device).expect("a device is plain data");
        SCHEMA.out_of_range(&values, &mut |path, value, range| self.refuse(path, value, &format!("must be {range}")));
    }

    fn nand(&mut self) {
        let nand = &self.device.nand;
        let per_program = self.device.geometry.pages_per_program;
        self.times("nand.read", &nand.read);
        if per_program > 1 && nand.program.values().len() > 1 {
            let what = "with geometry.pages_per_program above 1, give one time, that of the whole wordline";
            self.refuse("nand.program", shown(&nand.program), what);
        } else {
            self.times("nand.program", &nand.program);
        }
        self.advanced();
    }

    /// Checks the advanced commands against what they require.
    fn advanced(&mut self) {
        let (g, nand) = (&self.device.geometry, &self.device.nand);
        let Advanced { copy_back, multi_plane_program, multi_plane_read, multi_plane_erase, .. } = nand.advanced;
        let spans = g.mapping_unit.is_some_and(|unit| unit > g.page_size);
        let program = (multi_plane_program != Waste::Off).then_some(("program", "wise or blind"));
        let read = multi_plane_read.then_some(("read", "true"));
        let erase = multi_plane_erase.then_some(("erase", "true"));
        for (name, value) in [program, read, erase].into_iter().flatten() {
            let path = format!("nand.advanced.multi_plane_{name}");
            if nand.concurrency == Concurrency::Plane {
                let what = "planes work independently with nand.concurrency = plane and need no common command; set it \
                            to die";
                self.refuse(&path, value, what);
            }
            if !(2..=MAX_MERGED).contains(&g.planes) {
                let what = format!("requires 2 to {MAX_MERGED} planes in a die (geometry.planes)");
                self.refuse(&path, value, &what);
            }
            if spans {
                self.refuse(&path, value, "not supported if a mapping unit spans pages (geometry.mapping_unit)");
            }
        }
        if nand.advanced.plane_pairs && !g.planes.is_multiple_of(2) {
            self.refuse("nand.advanced.plane_pairs", true, "requires an even number of planes (geometry.planes)");
        }
        if nand.advanced.interleave && !matches!(nand.concurrency, Concurrency::Command | Concurrency::Chip) {
            let what = "dies work independently with this nand.concurrency; to interleave their commands, set it to \
                        command or chip";
            self.refuse("nand.advanced.interleave", true, what);
        }
        if nand.advanced.interleave && !(2..=MAX_MERGED).contains(&g.dies) {
            let what = format!("requires 2 to {MAX_MERGED} dies in a chip (geometry.dies)");
            self.refuse("nand.advanced.interleave", true, &what);
        }
        if nand.advanced.suspend.writes_first && !has_write_back(self.device) {
            let what = "needs a buffer in which writes wait: set buffer.capacity and buffer.write = \"write-back\", or \
                        leave it out";
            self.refuse("nand.advanced.suspend.writes_first", true, what);
        }
        if copy_back != Waste::Off && g.pages_per_program > 1 {
            let what = "a copy-back moves a single page; set geometry.pages_per_program to 1";
            self.refuse("nand.advanced.copy_back", "wise or blind", what);
        }
        self.planes_together(self.device);
        let one_die = match nand.concurrency {
            Concurrency::Die | Concurrency::PlanePair | Concurrency::Plane | Concurrency::PlaneReads => true,
            Concurrency::Command => g.dies == 1,
            Concurrency::Chip => g.dies == 1 && g.chips_per_package == 1 && self.device.channels_per_lun() == 1,
        };
        let overlapping = [
            ("cache_read", nand.advanced.cache_read),
            ("cache_program", nand.advanced.cache_program),
            ("suspend.program", nand.advanced.suspend.program),
            ("suspend.erase", nand.advanced.suspend.erase),
        ];
        for (name, _) in overlapping.into_iter().filter(|(_, on)| *on) {
            let path = format!("nand.advanced.{name}");
            if !one_die {
                let what = "requires dies that take commands independently (nand.concurrency = die or plane)";
                self.refuse(&path, true, what);
            }
            if spans {
                self.refuse(&path, true, "not supported if a mapping unit spans pages (geometry.mapping_unit)");
            }
        }
    }

    fn times(&mut self, path: &str, times: &OneOrMany<Duration>) {
        let values = times.values();
        let bits = self.device.nand.cell.bits() as usize;
        if values.len() != 1 && values.len() != bits {
            let cell = format!("{:?}", self.device.nand.cell).to_uppercase();
            let what = format!("must be one time, or a list of {bits}: one for each page type of {cell} (nand.cell)");
            self.refuse(path, shown(times), &what);
        }
    }

    fn bus(&mut self) {
        let bus = &self.device.bus;
        if ![8, 16].contains(&bus.width) {
            self.refuse("bus.width", bus.width, "must be 8 or 16, the data lines of flash parts");
        }
        let cycles = [("bus.read_cycle", bus.read_cycle), ("bus.write_cycle", bus.write_cycle)];
        for (path, cycle) in cycles.into_iter().filter_map(|(path, cycle)| Some((path, cycle?))) {
            if matches!(bus.protocol, BusProtocol::NvDdr(_)) {
                let what = "needs an SDR bus: NV-DDR has one rate for both directions; leave it out, or set \
                            bus.protocol.sdr";
                self.refuse(path, cycle, what);
            }
        }
    }

    fn controller(&mut self) {
        let host = &self.device.host;
        if ![512, 4096].contains(&host.sector_size.0) {
            let what = "must be 512B or 4KiB, the logical blocks of drives";
            self.refuse("host.sector_size", host.sector_size, what);
        }
        if let Some(firmware) = &self.device.controller.firmware {
            self.firmware(firmware);
        }
        if let Some(cap) = self.device.controller.power_cap.filter(|_| self.device.nand.advanced.overlaps()) {
            let what = "needs programs and erases without interruption: leave out nand.advanced.suspend, cache_read and \
                        cache_program, or the cap";
            self.refuse("controller.power_cap", cap, what);
        }
    }

    fn fill_timeout(&mut self) {
        let timeout = self.device.controller.fill_timeout;
        if timeout > Duration(0) && self.device.units_per_program() == 1 {
            let what = "one mapping unit fills a program of this device, so no write waits for others; leave it out";
            self.refuse("controller.fill_timeout", timeout, what);
        }
    }

    fn firmware(&mut self, firmware: &Firmware) {
        let path = |key: &str| format!("controller.firmware.{key}");
        let costs = [
            ("interrupt", firmware.interrupt),
            ("lookup", firmware.lookup),
            ("allocation", firmware.allocation),
            ("gc", firmware.gc),
            ("buffer", firmware.buffer),
        ];
        for (key, cost) in costs {
            if firmware.clock.0 > 0 && cost.time(firmware.clock) > MAX_COST.time() {
                self.refuse(&path(key), cost, &format!("must be at most {MAX_COST} on a core: it is a single step"));
            }
        }
    }

    fn buffer(&mut self) {
        let device = self.device;
        let Some(buffer) = device.active_buffer() else { return };
        let range = Bytes(device.unit_bytes())..=Bytes(u64::from(u32::MAX));
        self.in_range("buffer.capacity", buffer.capacity, range, "it holds mapping units, in memory of this machine");
        if buffer.low_water > buffer.high_water {
            let what = format!("must be at most buffer.high_water = {}, where eviction starts", buffer.high_water);
            self.refuse("buffer.low_water", buffer.low_water, &what);
        }
        if buffer.write == WritePolicy::WriteThrough && !buffer.read {
            let what = "must be true with buffer.write = \"write-through\", since the buffer would hold nothing";
            self.refuse("buffer.read", buffer.read, what);
        }
        self.read_ahead(device, buffer);
    }

    fn geometry(&mut self) {
        let g = &self.device.geometry;
        if g.chips_per_package > 0 && !g.chips.is_multiple_of(g.chips_per_package) {
            let what = format!("must divide geometry.chips = {}: packages have equal numbers of chips", g.chips);
            self.refuse("geometry.chips_per_package", g.chips_per_package, &what);
        }
        if g.page_size.0 == 0 || g.page_size.0 > MAX_PAGE || !g.page_size.0.is_multiple_of(512) {
            self.refuse("geometry.page_size", g.page_size, "must be whole sectors of 512 B, up to 16 MiB");
        }
        if g.spare_size > g.page_size {
            let what = format!("must be at most geometry.page_size = {}", g.page_size);
            self.refuse("geometry.spare_size", g.spare_size, &what);
        }
        if g.pages_per_program > 0 && !g.pages.is_multiple_of(g.pages_per_program) {
            let what = format!("must divide geometry.pages = {}: a block consists of whole programs", g.pages);
            self.refuse("geometry.pages_per_program", g.pages_per_program, &what);
        }
        if let Some((path, value, what)) = self.device.wiring_problem() {
            self.refuse(path, value, &what);
        }
    }

    fn mapping_unit(&mut self) {
        let g = &self.device.geometry;
        let (Some(unit), page) = (g.mapping_unit.map(|unit| unit.0), g.page_size.0) else { return };
        if unit == 0 || !unit.is_multiple_of(512) {
            return self.refuse("geometry.mapping_unit", Bytes(unit), "must be whole sectors of 512 B");
        }
        if page == 0 {
            return; // Reported already.
        }
        let shown = Bytes(unit);
        if unit <= page {
            if !page.is_multiple_of(unit) {
                let what = format!("must divide geometry.page_size = {}, or be a multiple of it", g.page_size);
                self.refuse("geometry.mapping_unit", shown, &what);
            }
            return;
        }
        if !unit.is_multiple_of(page) {
            let what = format!("must be a multiple of geometry.page_size = {}, or divide it", g.page_size);
            self.refuse("geometry.mapping_unit", shown, &what);
        } else if !u64::from(g.pages).is_multiple_of(unit / page) {
            let what = format!("spans {} pages, which must divide geometry.pages = {}", unit / page, g.pages);
            self.refuse("geometry.mapping_unit", shown, &what);
        }
        if g.pages_per_program > 1 {
            let what = "must be 1 if a mapping unit spans pages";
            self.refuse("geometry.pages_per_program", g.pages_per_program, what);
        }
        if self.device.bus.partial_transfer {
            self.refuse("bus.partial_transfer", true, "must be false if a mapping unit spans pages");
        }
    }

    /// Checks that the numbers of units fit into ids. All of it is computed with wide integers here, and may be
    /// computed in `u32` afterwards.
    fn sizes(&mut self) {
        let g = &self.device.geometry;
        let planes = [self.device.channels(), g.chips, g.dies, self.device.planes_per_die()]
            .into_iter()
            .map(u128::from)
            .product::<u128>();
        let unit = u128::from(g.mapping_unit.map_or(g.page_size.0.min(4096), |unit| unit.0));
        let pages = u128::from(g.pages) * u128::from(self.device.planes_together());
        let per_block = pages * u128::from(g.page_size.0) / unit;
        let units = planes * u128::from(g.blocks) * per_block;
        if per_block > u128::from(MAX_UNITS_PER_BLOCK) {
            let what = format!(
                "gives blocks of {per_block} mapping units, and at most {MAX_UNITS_PER_BLOCK} can be counted in 16 bits"
            );
            self.refuse("geometry.pages", g.pages, &what);
        }
        if units >= u128::from(MAX_UNITS) {
            let what = format!(
                "gives a device of {units} mapping units, and ids of 31 bits allow fewer than {MAX_UNITS}; increase \
                 geometry.mapping_unit to have fewer units"
            );
            self.refuse("geometry.blocks", g.blocks, &what);
        }
    }

    /// Checks what fused partial writes require.
    fn copy_back_modify(&mut self) {
        let device = self.device;
        if !device.nand.advanced.copy_back_modify {
            return;
        }
        let (one_unit, advanced) =
            (device.units_per_program() == 1 && device.pages_per_unit() == 1, &device.nand.advanced);
        let is_unit_map = device.mapping.scheme.needs(device).whole_blocks.is_none();
        let what = match () {
            () if !one_unit => "one page holds one mapping unit; set geometry.mapping_unit to page",
            () if !matches!(device.allocation, AllocationConfig::Static(_)) => {
                "the plane of a write must be fixed; set \
                allocation to static"
            }
            () if !is_unit_map => "the mapping scheme writes whole blocks; set mapping.scheme to page",
            () if advanced.merges() || advanced.overlaps() => {
                "the operation shares no command and does not overlap with \
                others; leave out the other advanced commands, except copy_back"
            }
            () if device.active_buffer().is_some() => {
                "a buffer collects the sectors of a page; set buffer.capacity to 0B"
            }
            () => return,
        };
        self.refuse("nand.advanced.copy_back_modify", true, what);
    }

    /// Checks logical pages, and stripes of static allocation.
    fn logical_page(&mut self) {
        let device = self.device;
        let unit = device.unit_bytes();
        if let AllocationConfig::Static(options) = &device.allocation
            && let Some(stripe) = options.stripe
            && (stripe.0 == 0 || !stripe.0.is_multiple_of(unit.max(device.page_bytes())) || stripe.0 > MAX_STRIPE)
        {
            let what = format!("must be whole flash pages and mapping units, up to 16 MiB; use {}", Bytes(unit));
            self.refuse("allocation.static.stripe", stripe, &what);
        }
        let is_unit_map = device.mapping.scheme.needs(device).whole_blocks.is_none();
        if let (AllocationConfig::Static(StaticConfig { stripe: Some(stripe), .. }), false) =
            (&device.allocation, is_unit_map)
        {
            self.refuse("allocation.static.stripe", stripe, "the mapping scheme allocates blocks; leave it out");
        }
        let Some(page) = device.geometry.logical_page else { return };
        let path = "geometry.logical_page";
        if page.0 == 0 || !page.0.is_multiple_of(unit) || page.0 > MAX_STRIPE {
            let up = Bytes((page.0.min(MAX_STRIPE) / unit).max(1) * unit);
            let what = format!("must be whole mapping units of {}, up to 16 MiB; use {up}", Bytes(unit));
            self.refuse(path, page, &what);
        }
        if !is_unit_map {
            self.refuse(path, page, "the mapping scheme writes whole blocks; set mapping.scheme to page");
        }
    }

    /// Checks SLC mode against the sizes of blocks and programs.
    fn slc_mode(&mut self) {
        let device = self.device;
        if device.nand.slc_mode.is_none() {
            return;
        }
        let (g, bits) = (&device.geometry, device.nand.cell.bits());
        let cell = format!("{:?}", device.nand.cell).to_uppercase();
        let per_unit = device.pages_per_unit();
        if bits == 1 {
            let what = "with nand.cell = slc all blocks hold one bit per cell; leave the table out, or set nand.cell to \
                        mlc, tlc or qlc";
            return self.refuse("nand.slc_mode", "a table", what);
        }
        if !g.pages.is_multiple_of(bits * per_unit) {
            let units = if per_unit > 1 { ", in whole mapping units" } else { "" };
            let what = format!(
                "must be a multiple of {}: with nand.slc_mode, a block of {cell} cells may hold one page of every \
                 {bits}{units}",
                bits * per_unit
            );
            return self.refuse("geometry.pages", g.pages, &what);
        }
        if g.pages_per_program > 1 && !g.pages_per_program.is_multiple_of(bits) {
            let what = format!(
                "must be 1 or a multiple of {bits}: with nand.slc_mode, a program of whole wordlines of {cell} cells \
                 may fill one page of each wordline"
            );
            return self.refuse("geometry.pages_per_program", g.pages_per_program, &what);
        }
        if device.block_size(CellMode::Slc).data_units == 0 {
            let what = "the summary of mapping.block_summary leaves no page for data in SLC mode (nand.slc_mode)";
            self.refuse("geometry.pages", g.pages, what);
        }
    }

    fn block(&mut self) {
        let device = self.device;
        let g = &device.geometry;
        let per_program = u64::from(device.units_per_page()) * u64::from(device.pages_per_program());
        if per_program > MAX_UNITS_PER_PROGRAM {
            let what = format!("gives programs of {per_program} mapping units, at most {MAX_UNITS_PER_PROGRAM} fit");
            return self.refuse("geometry.pages_per_program", g.pages_per_program, &what);
        }
        let why = "all units of a program are in write slots, whose ids have 20 bits";
        let slots = device.controller.write_slots;
        self.in_range("controller.write_slots", slots, device.units_per_program()..=MAX_SLOTS, why);
        if let BlockSummary::LastPage(bytes) = device.mapping.block_summary {
            let path = "mapping.block_summary.last_page";
            let page = Bytes(g.page_size.0 + g.spare_size.0);
            self.in_range(path, bytes, Bytes(1)..=page, "it is stored in a page and its spare bytes");
            if device.units_per_block() <= device.units_per_program() {
                self.refuse("geometry.pages", g.pages, "the summary of mapping.block_summary leaves no page for data");
            }
        }
    }

    fn capacity(&mut self) {
        let device = self.device;
        match device.capacity {
            Capacity::Spare(spare) => {
                if device.logical_units() == 0 {
                    self.refuse("capacity.spare", spare, "leaves no capacity for the host");
                }
            }
            Capacity::Logical(size) => {
                let least = device.unit_bytes() * device.units_per_tile();
                let what = "one mapping unit and one logical block up to the whole flash";
                self.in_range("capacity.logical", size, Bytes(least)..=Bytes(device.physical_bytes()), what);
            }
        }
    }

    fn durability(&mut self) {
        let device = self.device;
        let needs = device.mapping.scheme.needs(device);
        let ruled_out = device.no_own_durability();
        let without_own = ruled_out.or(needs.no_own_units);
        if let Some(why) = without_own.filter(|_| device.durability.trim_journal) {
            self.refuse("durability.trim_journal", true, why);
        }
        let (room, least) = (device.journal_room(), 4 * u64::from(device.units_per_program()));
        if device.durability.trim_journal && room < least && !device.merges_blocks() {
            let what = format!(
                "a mapping unit of the journal records {room} trims, must be {least} or more (4 for each mapping unit of \
                 a program), so that a block can always be erased: increase geometry.mapping_unit"
            );
            self.refuse("durability.trim_journal", true, &what);
        }
        if device.durability.map != MapMemory::Volatile {
            let name = if device.durability.map == MapMemory::Saved { "saved" } else { "non-volatile" };
            if let Some(why) = ruled_out {
                self.refuse("durability.map", name, why);
            } else if needs.translation.is_some() {
                self.refuse(
                    "durability.map",
                    name,
                    "the mapping scheme keeps the map in flash: choose mapping.scheme = \"page\"",
                );
            } else if device.durability.checkpoint.is_some() {
                self.refuse(
                    "durability.map",
                    name,
                    "no recovery reads a checkpoint then: remove durability.checkpoint",
                );
            }
        }
        let Some(interval) = device.durability.checkpoint else { return };
        let range = Bytes(device.unit_bytes())..=Bytes(1 << 60);
        let why =
            "one mapping unit of the checkpoint is written for this amount of host writes, at least a mapping unit";
        self.in_range("durability.checkpoint", interval, range, why);
        if let Some(why) = without_own {
            self.refuse("durability.checkpoint", interval, why);
        }
    }

    fn faults(&mut self) {
        let device = self.device;
        let Some(faults) = &device.faults else { return };
        if let Some(why) = device.mapping.scheme.needs(device).no_faults {
            self.refuse("faults", "a table", why);
        }
        if faults.wear_out != WearOut::Limit && device.endurance() == 0 {
            let what = "blocks of this device endure any number of erases; give nand.endurance, for example 3000";
            self.refuse("faults.wear_out", "given", what);
        }
        if faults.wear_out == WearOut::Exclude && (device.merges_blocks() || device.map_blocks() > 0) {
            let what = "the scheme has blocks of its own, which it must erase: choose mapping.scheme = \"page\"";
            self.refuse("faults.wear_out", "exclude", what);
        }
        if faults.wear_out == WearOut::Exclude && device.slc_cache.is_some() {
            let what = "blocks of the SLC cache have fixed addresses and must be erased: remove slc_cache";
            self.refuse("faults.wear_out", "exclude", what);
        }
        for place in &faults.inject {
            if let Some((name, count)) = device.lacks(place) {
                let what = format!("does not exist: there are {count} {name}, numbered from 0");
                self.refuse("faults.inject", place, &what);
            }
        }
        let good = DeviceConfig { faults: Some(FaultsConfig::default()), ..device.clone() };
        if device.factory_bad() > 0 && !device.reserve_ok() && good.reserve_ok() {
            let fits = |bad: &u32| {
                let factory_bad = BlockCount::Blocks(*bad);
                DeviceConfig { faults: Some(FaultsConfig { factory_bad, ..FaultsConfig::default() }), ..good.clone() }
                    .reserve_ok()
            };
            let mut most = 0;
            let mut too_many = device.factory_bad().min(device.geometry.blocks);
            while too_many - most > 1 {
                let middle = most + (too_many - most) / 2;
                *(if fits(&middle) { &mut most } else { &mut too_many }) = middle;
            }
            let what = format!(
                "leaves too few blocks to keep gc.soft_threshold free: use at most {most}, or increase capacity.spare"
            );
            self.refuse("faults.factory_bad", faults.factory_bad, &what);
        }
    }

    fn pools(&mut self) {
        let device = self.device;
        let gc = &device.gc;
        let paths = [("gc.scope", gc.scope), ("gc.destination", gc.destination)];
        for (path, _) in paths.into_iter().filter(|(_, scope)| *scope == GcScope::Pool) {
            let needs = if device.merges_blocks() {
                "the mapping scheme merges blocks and has no pools; set this to \"plane\""
            } else if !matches!(device.allocation, AllocationConfig::Dynamic(_)) {
                "only dynamic allocation has pools; set allocation to \"dynamic\", or this to \"plane\""
            } else if gc.pace == GcPace::Proportional {
                "with gc.pace = \"proportional\", the free space of each plane follows its own writes; set gc.pace to \
                 \"queued\", or this to \"plane\""
            } else if let GcPace::Burst(_) = gc.pace {
                "with gc.pace.burst, each plane collects its share of a burst; set gc.pace to \"queued\", or this to \
                 \"plane\""
            } else if gc.pace == GcPace::Exclusive {
                "with gc.pace = \"exclusive\", a victim holds the channel of its own plane; set gc.pace to \"queued\", or \
                 this to \"plane\""
            } else {
                continue;
            };
            self.refuse(path, "pool", needs);
        }
    }

    fn thresholds(&mut self) {
        let device = self.device;
        if device.gc.pace == GcPace::Exclusive && (device.merges_blocks() || device.map_blocks() > 0) {
            let what = "only garbage collection of page mapping holds the channel: choose mapping.scheme = \"page\"";
            self.refuse("gc.pace", "exclusive", what);
        }
        if let GcPace::Burst(burst) = device.gc.pace {
            self.burst(burst);
        }
        let (soft, hard) = (device.soft_threshold(), device.hard_threshold());
        if device.gc.soft_threshold.of(device.geometry.blocks) == 0 {
            let what = "must be 1 block or more: garbage collection copies into a free block";
            return self.refuse("gc.soft_threshold", device.gc.soft_threshold, what);
        }
        if hard > soft {
            let what = format!("{hard} blocks, must be at most gc.soft_threshold = {soft} blocks: it is more urgent");
            self.refuse("gc.hard_threshold", device.gc.hard_threshold, &what);
        }
        self.background();
        self.throttle();
        let reported = |problem: &Problem| problem.path.starts_with("capacity") || problem.path.starts_with("faults");
        if self.problems.iter().any(reported) || device.reserve_ok() {
            return;
        }
        let spare = match (device.min_spare(), &device.capacity) {
            (None, _) => "no capacity.spare is enough".to_owned(),
            (Some(least), Capacity::Spare(now)) => format!("capacity.spare must be at least {least} (it is {now})"),
            (Some(least), Capacity::Logical(_)) => {
                let most = Bytes(device.max_logical_units() * device.unit_bytes());
                format!("capacity.logical must be at most {most} (capacity.spare = {least})")
            }
        };
        if let Some(whole) = device.mapping.scheme.needs(device).whole_blocks
            && !whole.logs.is_empty()
        {
            let what = format!(
                "{} log blocks and blocks for merges do not fit beside the data blocks of a full device into the {} planes \
                 of mapping.scheme.{}.scope, with {} blocks each: {spare}, or give fewer log blocks",
                whole.kept,
                whole.planes,
                device.mapping.scheme.name(),
                device.geometry.blocks
            );
            return self.refuse("mapping.scheme", device.mapping.scheme.name(), &what);
        }
        let (kept, key) = match device.sure_threshold() {
            kept if kept < soft => (kept, "gc.hard_threshold"),
            kept => (kept, "gc.soft_threshold"),
        };
        let most = device.max_soft_threshold();
        let threshold = match most {
            Some(most) => format!("or {key} at most {most}"),
            None => "and no gc.soft_threshold is low enough for this capacity".to_owned(),
        };
        let own = match device.checkpoint_units() {
            0 => String::new(),
            units => format!("; durability.checkpoint takes {} of the flash", Bytes(units * device.unit_bytes())),
        };
        let what = format!(
            "{kept} of {} blocks cannot be kept free on a full device: {spare}, {threshold}{own}",
            device.geometry.blocks
        );
        match (&device.capacity, device.min_spare().filter(|_| most.is_none())) {
            (Capacity::Spare(spare), Some(_)) => self.refuse("capacity.spare", spare, &what),
            (Capacity::Logical(size), Some(_)) => self.refuse("capacity.logical", size, &what),
            (_, None) => self.refuse("gc.soft_threshold", device.gc.soft_threshold, &what),
        }
    }

    /// Checks what bursts of garbage collection require.
    fn burst(&mut self, burst: Burst) {
        let device = self.device;
        let mut refuse = |what: &str| self.refuse("gc.pace", "{ burst = .. }", what);
        let units = burst.room.map(|room| room.0 / device.unit_bytes());
        if units == Some(0) || (units.is_some() && !has_write_back(device)) {
            refuse(
                "room is a part of a buffer with write-back, of one mapping unit or more: set buffer, or leave room out",
            );
        }
        if burst.rest.is_some() && burst.share.is_none() {
            refuse("rest says when the host has its share of a burst: set share too, or leave rest out");
        }
        if device.merges_blocks() || device.map_blocks() > 0 {
            refuse("only garbage collection of page mapping works in bursts: choose mapping.scheme = \"page\"");
        }
        if device.slc_cache.is_some() {
            refuse("folding frees the SLC cache plane by plane; remove slc_cache, or set gc.pace to \"queued\"");
        }
        if device.faults.is_some() {
            refuse("failed blocks need room between bursts; remove the table faults, or set gc.pace to \"queued\"");
        }
        if device.gc.background.is_some() {
            refuse("a burst leaves victims half-collected, which gc.background would finish; remove one of them");
        }
    }

    /// Checks garbage collection in idle time.
    fn background(&mut self) {
        let device = self.device;
        let Some(background) = &device.gc.background else { return };
        if device.merges_blocks() {
            let scheme = device.mapping.scheme.name();
            let what = format!("not supported with mapping.scheme = {scheme}, whose merges free blocks; leave it out");
            self.refuse("gc.background", "{ .. }", &what);
        }
        let (until, blocks) = (background.until.of(device.geometry.blocks), device.geometry.blocks);
        let least = device.soft_threshold() + 2;
        if !(least..=blocks).contains(&until) {
            let what = format!(
                "{until} blocks, must be from {least} (gc.soft_threshold + 2) to {blocks} (geometry.blocks): with up to \
                 {} free blocks, garbage collection runs anyway",
                device.soft_threshold()
            );
            self.refuse("gc.background.until", background.until, &what);
        }
    }

    /// Checks the delay of host writes.
    fn throttle(&mut self) {
        let device = self.device;
        if let Some((buffer, window)) = device.active_buffer().and_then(|buffer| Some((buffer, buffer.credits?))) {
            let mut refuse = |what: &str| self.refuse("buffer.credits", window, what);
            if buffer.high_water >= 1.0 {
                refuse("writes are delayed above buffer.high_water; set it below 1");
            }
            if buffer.write != WritePolicy::WriteBack {
                refuse("only a buffer that writes back delays writes; set buffer.write to write-back");
            }
            if device.gc.throttle.is_some() {
                refuse("gc.throttle delays writes too; remove one of them");
            }
        }
        let Some(throttle) = &device.gc.throttle else { return };
        let (below, blocks) = (throttle.below.of(device.geometry.blocks), device.geometry.blocks);
        let least = device.hard_threshold() + 1;
        if !(least..=blocks).contains(&below) {
            let what = format!(
                "{below} blocks, must be from {least} (gc.hard_threshold + 1) to {blocks} (geometry.blocks): at the hard \
                 threshold, the delay is longest"
            );
            self.refuse("gc.throttle.below", throttle.below, &what);
        }
    }

    fn temperature(&mut self) {
        let device = self.device;
        let name = device.temperature.name();
        if device.temperature.classes() < 2 {
            return;
        }
        if let Some(why) = device.mapping.scheme.needs(device).no_classes {
            self.refuse("temperature", name, why);
        }
        if device.gc.frontiers == Frontiers::Single && device.units_per_program() > 1 {
            let what = "with gc.frontiers = \"single\", moved units of two classes would share a program of several \
                        units; set gc.frontiers to \"separate\"";
            self.refuse("temperature", name, what);
        }
        if device.gc.frontiers == Frontiers::Single && device.nand.advanced.copy_back != Waste::Off {
            let what = "with gc.frontiers = \"single\", a copy-back may move units of several classes together; \
                        set gc.frontiers to \"separate\"";
            self.refuse("temperature", name, what);
        }
    }

    fn policies(&mut self) {
        let device = self.device;
        let eviction = device.active_buffer().map_or(Ok(()), |buffer| buffer.eviction.check(device));
        let queues = device.host.queues.as_ref();
        let arbitration = queues.map_or(Ok(()), |queues| queues.arbitration.check(device));
        for (path, result) in [
            ("host.queues.arbitration", arbitration),
            ("allocation", device.allocation.check(device)),
            ("temperature", device.temperature.check(device)),
            ("mapping.scheme", device.mapping.scheme.check(device)),
            ("gc.trigger", device.gc.trigger.check(device)),
            ("gc.wear", device.gc.wear.check(device)),
            ("gc.victim", device.gc.victim.check(device)),
            ("scheduler", device.scheduler.check(device)),
            ("buffer.eviction", eviction),
        ] {
            if let Err((policy, what)) = result {
                self.problems.push(Problem::new(format!("{path}.{policy}"), format!("{path}.{policy}: {what}")));
            }
        }
    }
}

/// Returns a time, or a list of times, as users write it.
fn shown(times: &OneOrMany<Duration>) -> String {
    match times {
        OneOrMany::One(time) => time.to_string(),
        OneOrMany::Many(times) => format!("[{}]", times.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns `true` if a device file has a buffer with write-back. One of 0 bytes is switched off for a run.
fn has_write_back(device: &DeviceConfig) -> bool {
    device.buffer.as_ref().is_some_and(|buffer| buffer.write == WritePolicy::WriteBack)
}
