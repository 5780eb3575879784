//! The map in the controller: addresses of translation pages, and cached entries.

use super::cmt::Cmt;
use super::options::DftlConfig;
use crate::config::DeviceConfig;
use crate::sim::id::{Lpn, Ppn};
use crate::sim::memory::Divider;
use crate::state::{Reader, StateError, Writer};

/// Global translation directory and cached mapping table of DFTL.
#[derive(Clone, Debug)]
pub struct MapState {
    /// The cached mapping table.
    pub cmt: Cmt,
    /// The global translation directory: first address of each translation page plus one, or 0 if it was never written.
    directory: Vec<u32>,
    /// Translation pages that functional writes have outdated, a bit for each.
    changed: Vec<u64>,
    per_page: Divider,
    units: u32,
    /// See [`DftlConfig::batch_updates`].
    pub batch: bool,
    /// See [`DftlConfig::lazy_copies`].
    pub lazy: bool,
}

impl MapState {
    /// Creates a map without translation pages in flash.
    pub fn new(options: &DftlConfig, device: &DeviceConfig) -> MapState {
        let units = device.logical_units() as u32;
        let per_page = options.entries_per_page(device);
        let pages = units.div_ceil(per_page);
        let cached = options.cached_entries().clamp(1, u64::from(units)) as u32;
        // A share has few decimal digits: exact in billionths, and the same on every machine.
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

    /// Returns the number of translation pages.
    pub fn pages(&self) -> u32 {
        self.directory.len() as u32
    }

    /// Returns the translation page of a logical unit.
    #[inline]
    pub fn page_of(&self, lpn: Lpn) -> u32 {
        self.per_page.divide(lpn.0)
    }

    /// Returns the number of entries before that of `lpn` in its translation page.
    #[inline]
    pub fn entry_in_page(&self, lpn: Lpn) -> u32 {
        self.per_page.divide_with_rest(lpn.0).1
    }

    /// Returns the maximum number of entries of a translation page.
    pub fn entries_per_page(&self) -> u32 {
        self.per_page.divisor()
    }

    /// Returns `true` if all entries of a translation page are cached, so that it can be written without being read.
    pub fn is_wholly_cached(&self, page: u32) -> bool {
        let entries = (self.units - page * self.per_page.divisor()).min(self.per_page.divisor());
        self.cmt.resident_of(page) == entries
    }

    /// Returns the address of a translation page, if it is in flash.
    #[inline]
    pub fn place(&self, page: u32) -> Option<Ppn> {
        self.directory[page as usize].checked_sub(1).map(Ppn)
    }

    /// Sets the address of a translation page. Returns the previous one.
    pub fn set_place(&mut self, page: u32, ppn: Ppn) -> Option<Ppn> {
        let old = self.place(page);
        self.directory[page as usize] = ppn.0 + 1;
        old
    }

    /// Notes that a functional write has changed the entry of `lpn`.
    #[inline]
    pub fn note_changed(&mut self, lpn: Lpn) {
        let page = self.page_of(lpn);
        self.changed[(page / 64) as usize] |= 1 << (page % 64);
    }

    /// Writes the directory, the outdated pages and the cached entries to a saved state.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.directory.iter().try_for_each(|&entry| out.u32(entry))?;
        self.changed.iter().try_for_each(|&word| out.u64(word))?;
        self.cmt.save(out)
    }

    /// Reads what [`MapState::save`] wrote, into a new map. The caller checks the addresses.
    pub fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        for entry in &mut self.directory {
            *entry = input.u32()?;
        }
        for word in &mut self.changed {
            *word = input.u64()?;
        }
        let beyond = self.directory.len() % 64;
        if beyond > 0 && self.changed.last().is_some_and(|word| word >> beyond != 0) {
            return Err(input.damaged("a change of a translation page that does not exist"));
        }
        self.cmt.load_from(input, self.units)
    }

    /// Returns `true` if functional writes have changed a translation page since the last call.
    pub fn take_changed(&mut self, page: u32) -> bool {
        let word = &mut self.changed[(page / 64) as usize];
        let changed = *word >> (page % 64) & 1 == 1;
        *word &= !(1 << (page % 64));
        changed
    }
}
