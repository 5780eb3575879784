//! DFTL: the map is in flash, and the controller caches entries of it (Gupta, Kim, Urgaonkar, "DFTL: a flash
//! translation layer employing demand-based selective caching of page-level address mappings", ASPLOS 2009).

pub mod cmt;
mod directory;
mod entries;
mod now;
mod pages;
mod reclaim;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::{
    Bound, Change, Context, Ended, KeptBlock, Location, LookUp, Mapping, Needs, Program, Recovering, SchemeOptions,
    SchemeReport, Step, TRANSLATION, Target, Translation, page,
};
use crate::config::DeviceConfig;
use crate::config::cells::CellMode;
use crate::config::units::Bytes;
use crate::ftl::Ftl;
use crate::ftl::space::{InHand, Role};
use crate::policy::Policy;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::sim::table::Table;
use crate::state::{Reader, StateError, Writer};
use crate::work::{Call, Fifo};
pub use directory::MapState;
use pages::Page;
use reclaim::Reclaim;

/// Options of DFTL.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DftlConfig {
    /// Memory of the cached mapping table.
    pub cache: Bytes,
    /// Memory of one cached entry: the logical unit and its address.
    pub cached_entry: Bytes,
    /// Bytes of an entry, an address, in a translation page.
    pub entry: Bytes,
    /// Share of the cache for entries that were used more than once (protected segment).
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub protected: f64,
    /// True if one update of a translation page writes all its entries that are newer in the cache, and a victim causes
    /// one update for each page. False if each entry needs its own.
    pub batch_updates: bool,
    /// True if garbage collection updates a cached entry in the cache only, and its translation page later.
    pub lazy_copies: bool,
    /// Share of spare blocks for translation pages, beyond the least that works.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub map_spare: f64,
    /// Cell mode of these blocks. `slc` needs the times of `nand.slc_mode`.
    #[serde(skip_serializing_if = "CellMode::is_native")]
    #[schemars(extend("default" = "native"))]
    pub cells: CellMode,
}

impl Default for DftlConfig {
    fn default() -> Self {
        DftlConfig {
            cache: Bytes(64 << 10),
            cached_entry: Bytes(8),
            entry: Bytes(4),
            protected: 0.5,
            batch_updates: true,
            lazy_copies: true,
            map_spare: 0.25,
            cells: CellMode::Native,
        }
    }
}

/// Maximum number of entries of a translation page.
const MAX_ENTRIES: u64 = 1 << 24;
/// Maximum number of cached entries.
const MAX_CACHED: u64 = 1 << 30;
/// Maximum number of units of a block. Each unit may have its victim wait for another translation page, and these waits
/// are counted in 16 bits.
const MAX_UNITS_PER_BLOCK: u32 = 1 << 15;

impl DftlConfig {
    /// Returns the bytes of a translation page, which is as large as one program.
    fn bytes_per_page(&self, device: &DeviceConfig) -> u64 {
        u64::from(device.block_size(self.cells).program_units) * device.unit_bytes()
    }

    /// Returns the number of entries of a translation page.
    pub fn entries_per_page(&self, device: &DeviceConfig) -> u32 {
        (self.bytes_per_page(device) / self.entry.0.max(1)).clamp(1, MAX_ENTRIES) as u32
    }

    /// Returns the number of entries that the cache can hold.
    pub fn cached_entries(&self) -> u64 {
        self.cache.0 / self.cached_entry.0.max(1)
    }
}

impl SchemeOptions for DftlConfig {
    fn needs(&self, device: &DeviceConfig) -> Needs {
        let entries_per_page = self.entries_per_page(device);
        let translation = Translation { entries_per_page, spare: self.map_spare, cells: self.cells };
        Needs { translation: Some(translation), ..Needs::default() }
    }

    fn bytes(&self, device: &DeviceConfig) -> u64 {
        let logical = device.logical_units();
        let cached = self.cached_entries().clamp(1, logical);
        // Entries of the cache, and its hash chains.
        36 * cached + 4 * cached.next_power_of_two() + 64 * logical.div_ceil(u64::from(self.entries_per_page(device)))
    }
}

/// Demand-based caching of the page map.
#[derive(Clone, Debug)]
pub struct Dftl {
    /// Map in the controller.
    pub state: MapState,
    pages: Table<u32, Page>,
    jobs: Table<PlaneId, Reclaim>,
    /// Translation pages that wait for room, indexed by plane. Pages that were queued since are skipped.
    stalled: Table<PlaneId, VecDeque<u32>>,
    /// Units that garbage collection has moved and whose entries are not cached, as victim and translation page.
    /// Indexed by plane.
    moved: Table<PlaneId, Vec<(u32, u32)>>,
    /// Host operations that wait for a cache entry.
    line: Fifo,
}

/// Tasks of the scheme.
mod step {
    /// Serve the operations that wait for a cache entry.
    pub(super) const SERVE: u8 = 0;
    /// Continue with a page that was fetched, after resuming the operations that waited for its entries.
    pub(super) const FETCHED: u8 = 1;
    /// Resume the operations that waited for an update.
    pub(super) const UPDATED: u8 = 2;
    /// Request the updates that victims wait for.
    pub(super) const ASK: u8 = 3;
}

impl Policy for Dftl {
    type Config = DftlConfig;

    fn check(options: &DftlConfig, device: &DeviceConfig) -> Result<(), String> {
        if options.cells == CellMode::Slc && device.nand.slc_mode.is_none() {
            let what = "needs nand.slc_mode, with the times of such blocks; add it, or use \"native\"";
            return Err(format!("cells = slc: {what}"));
        }
        let program = options.bytes_per_page(device);
        if !(1..=program).contains(&options.entry.0) {
            return Err(format!("entry = {}: expected 1 B to {program} B (a translation page)", options.entry));
        }
        if program / options.entry.0 > MAX_ENTRIES {
            return Err(format!("entry = {}: a translation page has at most {MAX_ENTRIES} entries", options.entry));
        }
        if options.cached_entry.0 == 0 || !(1..=MAX_CACHED).contains(&options.cached_entries()) {
            let what = format!("must hold from 1 to {MAX_CACHED} entries of {}", options.cached_entry);
            return Err(format!("cache = {}: {what} (cached_entry)", options.cache));
        }
        if device.units_per_block() > MAX_UNITS_PER_BLOCK {
            let units = device.units_per_block();
            return Err(format!("a block of {units} mapping units, at most {MAX_UNITS_PER_BLOCK} with this scheme"));
        }
        Ok(())
    }

    fn new(options: &DftlConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Dftl::check(options, device)?;
        let state = MapState::new(options, device);
        let planes = device.total_planes();
        Ok(Dftl {
            pages: Table::new(state.pages(), Page::default()),
            jobs: Table::new(planes, Reclaim::default()),
            stalled: Table::new(planes, VecDeque::new()),
            moved: Table::new(planes, Vec::new()),
            line: Fifo::default(),
            state,
        })
    }
}

impl<C: Context + ?Sized> Mapping<C> for Dftl {
    fn look_up(&mut self, cx: &mut C, lpn: Lpn, what: LookUp) -> bool {
        match what {
            LookUp::Read if matches!(cx.ftl().map.get(lpn), Location::Slot(_)) => true,
            LookUp::Read | LookUp::Write => {
                let hit = self.state.cmt.touch(lpn);
                cx.ftl().counters.map.hits += u64::from(hit);
                hit
            }
            LookUp::Await(id) => {
                cx.ftl().counters.map.misses += 1;
                self.seek(cx, id, false);
                false
            }
            LookUp::Arrived => {
                self.state.cmt.load(lpn);
                true
            }
        }
    }

    fn changed(&mut self, cx: &mut C, lpn: Lpn, change: Change) {
        match change {
            Change::Trimmed => {}
            _ if !cx.has_time() => {
                if lpn.0 < cx.ftl().host_units {
                    self.state.note_changed(lpn);
                }
            }
            Change::Entry => self.entry_changed(cx, lpn),
            Change::Moved(from) => self.entry_moved(cx, lpn, from),
        }
    }

    fn place(&mut self, _: &mut C, _: TransactionId) {}

    fn target(&self, ftl: &Ftl, of: Program) -> Target {
        Mapping::<C>::target(&page::Page, ftl, of)
    }

    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        self.start_map_write(cx, id)
    }

    fn ended(&mut self, cx: &mut C, end: Ended) -> bool {
        match end {
            Ended::MapRead(id) => self.finish_map_read(cx, id),
            Ended::MapWrite(id) => self.finish_map_write(cx, id),
            Ended::MapWriteFailed(id) => self.write_map_again(cx, id),
            Ended::Erase(plane) | Ended::EraseFailed(plane) => {
                let awaiting_erase = &mut self.jobs[plane].awaiting_erase;
                *awaiting_erase = awaiting_erase.saturating_sub(1);
            }
            Ended::CopyRead(_) | Ended::Writes(..) | Ended::Copies(..) | Ended::ProgramFailed(..) => {
                unreachable!("DFTL keeps no blocks of data")
            }
        }
        true
    }

    fn step(&mut self, cx: &mut C, step: Step) {
        match step {
            Step::Call(Call { step: step::SERVE, .. }) => self.serve_line(cx),
            Step::Call(Call { step: step::FETCHED, number, .. }) => self.fetched(cx, number),
            Step::Call(Call { step: step::UPDATED, line, .. }) => self.updated(cx, line),
            Step::Call(Call { line, number, .. }) => self.ask_updates(cx, line, BlockId(number)),
            Step::MapProgrammed(page, ppn) => self.page_programmed(cx, page, ppn),
            Step::Collected(plane) if self.moved[plane].is_empty() => {}
            Step::Collected(plane) => self.hold_moved(cx, plane),
            Step::ReadOnly => self.drop_map_updates(cx),
            Step::Seal => self.write_changed_map(cx),
        }
    }

    fn make_room(&mut self, cx: &mut C, plane: PlaneId, freed: bool) {
        if freed {
            self.unpark_map(cx, plane);
        }
        self.reclaim(cx, plane);
    }

    fn can_go_on(&self, ftl: &Ftl, plane: PlaneId, hand: InHand) -> bool {
        let (planes, position) = (ftl.shape().planes, ftl.allocation.order().position(plane));
        let pages = (self.state.pages() + planes - 1 - position) / planes;
        Mapping::<C>::can_go_on(&page::Page, ftl, plane, hand)
            && ftl.blocks.is_sure(ftl.blocks.region(plane, Role::Map), self.jobs[plane].in_hand(ftl))
            && ftl.blocks.holds_map(plane, pages)
    }

    fn recover(&mut self, found: &mut dyn Recovering) -> Result<(), String> {
        found.close()
    }

    fn blocks(&self, _: &Ftl, _: &mut dyn FnMut(KeptBlock)) {}

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.state.save(out)
    }

    fn load(&mut self, ftl: &mut Ftl, input: &mut Reader, written: &mut [u16]) -> Result<(), StateError> {
        self.state.load(input)?;
        let group = ftl.blocks.size(Role::Map).program_units;
        for page in 0..self.state.pages() {
            let Some(ppn) = self.state.place(page) else { continue };
            let units = ppn.0..ppn.0.saturating_add(group);
            let whole = ftl.blocks.offset_in_block(ppn).is_multiple_of(group);
            let home = ftl.blocks.plane_of(ftl.blocks.block_of(ppn)) == ftl.map_home(page);
            if !whole || !home || !units.clone().all(|unit| ftl.blocks.adopt(Ppn(unit), Role::Map, written)) {
                return Err(input.damaged(format!("the address of translation page {page}")));
            }
            units.for_each(|unit| ftl.map.set_owner(Ppn(unit), TRANSLATION | page));
        }
        Ok(())
    }

    fn report(&self, _: &Ftl) -> SchemeReport {
        let (loading, outstanding) = (self.state.cmt.loading(), self.describe_pages());
        SchemeReport { loading, outstanding, ..SchemeReport::default() }
    }

    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        self.recount_map(ftl)
    }
}
