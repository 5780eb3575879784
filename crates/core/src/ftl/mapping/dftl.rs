//! DFTL: the map is in flash, and the controller holds the entries that are in use (Gupta, Kim, Urgaonkar, "DFTL: a
//! flash translation layer employing demand-based selective caching of page-level address mappings", ASPLOS 2009).

use super::MappingPolicy;
use super::cmt::Cmt;
use crate::config::DeviceConfig;
use crate::config::units::Bytes;
use crate::policy::Policy;
use crate::sim::id::{Lpn, Ppn};
use crate::sim::memory::Divider;
use crate::state::{Reader, StateError, Writer};

/// Options of DFTL.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DftlConfig {
    /// Memory of the cached mapping table.
    pub cache: Bytes,
    /// Memory of one cached entry: the logical unit and its place.
    pub cached_entry: Bytes,
    /// Bytes of an entry in a translation page: the place; the logical unit follows from where it stands.
    pub entry: Bytes,
    /// Share of the cache that is the protected segment, for entries that were used more than once.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub protected: f64,
    /// One update of a translation page writes all its entries that are newer in the cache, and the moved units of a
    /// victim are written together, one update for each translation page; else each entry takes an update of its own.
    pub batch_updates: bool,
    /// A moved unit whose entry is in the cache is changed there, and not in flash yet.
    pub lazy_copies: bool,
    /// Spare share of the blocks that are kept for translation pages, beyond the least that works.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub map_spare: f64,
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
        }
    }
}

/// Entries of the map that can be told apart in one translation page.
const MOST_ENTRIES: u64 = 1 << 24;
/// Entries that a cache may hold.
const MOST_CACHED: u64 = 1 << 30;
/// Units of a block: each may make another translation page wait for its victim, and those are counted in 16 bits.
const MOST_UNITS_PER_BLOCK: u32 = 1 << 15;

impl DftlConfig {
    /// Entries of a translation page, which is as large as one program.
    pub fn entries_per_page(&self, device: &DeviceConfig) -> u32 {
        let bytes = u64::from(device.units_per_program()) * device.unit_bytes();
        (bytes / self.entry.0.max(1)).clamp(1, MOST_ENTRIES) as u32
    }

    /// Entries that the cache holds.
    pub fn cached_entries(&self) -> u64 {
        self.cache.0 / self.cached_entry.0.max(1)
    }
}

/// What DFTL knows: the global translation directory and the cached mapping table.
#[derive(Clone, Debug)]
pub struct MapState {
    /// The cached mapping table.
    pub cmt: Cmt,
    /// The global translation directory: the first place of each translation page plus one, 0 for none.
    directory: Vec<u32>,
    /// Translation pages that functional writes have made out of date: a bit for each.
    changed: Vec<u64>,
    per_page: Divider,
    units: u32,
    /// See [`DftlConfig::batch_updates`].
    pub batch: bool,
    /// See [`DftlConfig::lazy_copies`].
    pub lazy: bool,
}

impl MapState {
    /// An empty map, nothing of it in flash.
    pub fn new(options: &DftlConfig, device: &DeviceConfig) -> MapState {
        let (units, per_page) = (device.logical_units() as u32, options.entries_per_page(device));
        let pages = units.div_ceil(per_page);
        let cached = options.cached_entries().clamp(1, u64::from(units)) as u32;
        // A share of a few digits: exact in billionths, the same on every machine.
        let protected = u64::from(cached) * (options.protected * 1e9 + 0.5) as u64 / 1_000_000_000;
        MapState {
            cmt: Cmt::new(cached, protected as u32, pages, per_page),
            directory: vec![0; pages as usize],
            changed: vec![0; pages.div_ceil(64) as usize],
            per_page: Divider::new(per_page),
            units,
            batch: options.batch_updates,
            lazy: options.lazy_copies,
        }
    }

    /// Translation pages.
    pub fn pages(&self) -> u32 {
        self.directory.len() as u32
    }

    /// The translation page of a logical unit.
    #[inline]
    pub fn page_of(&self, lpn: Lpn) -> u32 {
        self.per_page.divide(lpn.0)
    }

    /// Entries of a translation page before that of `lpn`.
    #[inline]
    pub fn entry_in_page(&self, lpn: Lpn) -> u32 {
        self.per_page.divide_with_rest(lpn.0).1
    }

    /// The most entries of a translation page.
    pub fn entries_per_page(&self) -> u32 {
        self.per_page.divisor()
    }

    /// Whether all entries of a translation page are in the cache, so that it can be written without being read.
    pub fn is_wholly_cached(&self, page: u32) -> bool {
        let entries = (self.units - page * self.per_page.divisor()).min(self.per_page.divisor());
        self.cmt.resident_of(page) == entries
    }

    /// Where a translation page is in flash.
    #[inline]
    pub fn place(&self, page: u32) -> Option<Ppn> {
        self.directory[page as usize].checked_sub(1).map(Ppn)
    }

    /// A translation page is in flash at `place`; returns where it was.
    pub fn set_place(&mut self, page: u32, place: Ppn) -> Option<Ppn> {
        let old = self.place(page);
        self.directory[page as usize] = place.0 + 1;
        old
    }

    /// A functional write has changed the entry of `lpn`.
    #[inline]
    pub fn note_changed(&mut self, lpn: Lpn) {
        let page = self.page_of(lpn);
        self.changed[(page / 64) as usize] |= 1 << (page % 64);
    }

    /// Writes the directory, the pages that are out of date and the cached entries for a saved state.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.directory.iter().try_for_each(|&entry| out.u32(entry))?;
        self.changed.iter().try_for_each(|&word| out.u64(word))?;
        self.cmt.save(out)
    }

    /// Reads what [`MapState::save`] wrote, into a new one. Where the pages are is for the caller to check.
    pub fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        for entry in &mut self.directory {
            *entry = input.u32()?;
        }
        for word in &mut self.changed {
            *word = input.u64()?;
        }
        let beyond = self.directory.len() % 64;
        if beyond > 0 && self.changed.last().is_some_and(|word| word >> beyond != 0) {
            return Err(input.damaged("a change of a translation page that is none"));
        }
        self.cmt.load_from(input, self.units)
    }

    /// Whether functional writes have changed a translation page since the last call.
    pub fn take_changed(&mut self, page: u32) -> bool {
        let word = &mut self.changed[(page / 64) as usize];
        let changed = *word >> (page % 64) & 1 == 1;
        *word &= !(1 << (page % 64));
        changed
    }
}

/// Demand-based caching of the page map.
#[derive(Clone, Debug)]
pub struct Dftl {
    state: Option<MapState>,
}

impl Policy for Dftl {
    type Config = DftlConfig;

    fn check(options: &DftlConfig, device: &DeviceConfig) -> Result<(), String> {
        let program = u64::from(device.units_per_program()) * device.unit_bytes();
        if !(1..=program).contains(&options.entry.0) {
            return Err(format!("entry = {}: from 1 B to a translation page, which is {program} B", options.entry));
        }
        if program / options.entry.0 > MOST_ENTRIES {
            return Err(format!("entry = {}: a translation page has at most {MOST_ENTRIES} entries", options.entry));
        }
        if options.cached_entry.0 == 0 || !(1..=MOST_CACHED).contains(&options.cached_entries()) {
            let what = format!("must hold from 1 to {MOST_CACHED} entries of {}", options.cached_entry);
            return Err(format!("cache = {}: {what} (cached_entry)", options.cache));
        }
        if !(0.0..1.0).contains(&options.protected) {
            let what = "from 0 to below 1: it is a share of the cache, and new entries need some of it";
            return Err(format!("protected = {}: {what}", options.protected));
        }
        if !(0.0..1.0).contains(&options.map_spare) {
            return Err(format!("map_spare = {}: from 0 to below 1: it is a share of blocks", options.map_spare));
        }
        if device.units_per_block() > MOST_UNITS_PER_BLOCK {
            let units = device.units_per_block();
            return Err(format!("a block of {units} mapping units, at most {MOST_UNITS_PER_BLOCK} with this scheme"));
        }
        Ok(())
    }

    fn new(options: &DftlConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Dftl::check(options, device)?;
        Ok(Dftl { state: Some(MapState::new(options, device)) })
    }
}

impl MappingPolicy for Dftl {
    fn take_state(&mut self) -> Option<MapState> {
        self.state.take()
    }
}
