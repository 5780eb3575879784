//! What the controller knows of the map: where translation pages are, and the entries in use.

use super::DftlConfig;
use super::cmt::Cmt;
use crate::config::DeviceConfig;
use crate::sim::id::{Lpn, Ppn};
use crate::sim::memory::Divider;
use crate::state::{Reader, StateError, Writer};

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

    /// A translation page is in flash at `ppn`; returns where it was.
    pub fn set_place(&mut self, page: u32, ppn: Ppn) -> Option<Ppn> {
        let old = self.place(page);
        self.directory[page as usize] = ppn.0 + 1;
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
