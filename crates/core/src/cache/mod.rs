//! The write buffer in the controller's memory: the units and sectors that it holds, and which of them are dirty. It
//! chooses the units to write back, and the router turns them into operations. `traffic` has the functions for the
//! router.

mod ahead;
pub mod dram;
pub mod eviction;
mod flush;
mod streams;
pub mod traffic;
pub(crate) mod write_out;

use std::collections::VecDeque;

use crate::config::{DeviceConfig, WritePolicy};
use crate::external::{Externals, Fault};
use crate::ftl::temperature::TemperatureConfig;
use crate::host::throttle::FillLevel;
use crate::metrics::counters::BufferCounts;
use crate::sim::id::{Lpn, RequestId, TransactionId};
use crate::sim::list;
use crate::sim::memory::{prefetch, zeroed};
use crate::sim::table::Table;
use crate::sim::time::Time;
use dram::Dram;
use eviction::Eviction;
use flush::Barriers;
use list::{List, Member, NONE};
use streams::ReadAhead;

/// State of one entry. It is kept in one place, because the buffer is larger than the caches of the processor.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Mask of the first 64 sectors that the entry holds; see [`Buffer::mask`].
    mask: u64,
    /// Logical unit. [`NONE`] if the entry is free, or if the unit was deallocated while writes of it were in flight.
    lpn: u32,
    /// Neighbors in the list of dirty units.
    links: [u32; 2],
    /// Number of the first barrier after the unit became dirty.
    epoch: u32,
    /// Number of writes of the unit that are in flight to flash.
    flights: u32,
    /// Index in `Buffer::dirty` of its list while it is dirty.
    list: u16,
    dirt: Dirt,
    /// True if the entry is freed when it is clean.
    leaving: bool,
}

/// Dirty state of an entry. A dirty entry holds sectors that are in no outstanding write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dirt {
    /// Not dirty, and in no list.
    Clean,
    /// Dirty, and in the `waiting` list.
    Waiting,
    /// Selected for write-back, and in the `out` list.
    Out,
    /// Like `Out`, with a unit of its logical page, whose units are all selected.
    Joined,
}

const _: () = assert!(size_of::<Entry>() == 32);

impl Entry {
    const fn of(lpn: u32) -> Entry {
        Entry { mask: 0, lpn, links: [NONE; 2], epoch: 0, flights: 0, list: 0, dirt: Dirt::Clean, leaving: false }
    }

    /// Returns `true` if the entry is dirty, selected for write-back or not.
    fn is_dirty(&self) -> bool {
        self.dirt != Dirt::Clean
    }

    const NOTHING: Entry = Entry::of(NONE);
}

impl Member for Entry {
    #[inline]
    fn links(&self) -> [u32; 2] {
        self.links
    }

    #[inline]
    fn links_mut(&mut self) -> &mut [u32; 2] {
        &mut self.links
    }
}

/// A unit that is to be written to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Entry of the unit, or [`Pick::PADDING`] for a unit that is read from flash and written with its block or logical
    /// page.
    pub entry: u32,
    /// Logical unit.
    pub lpn: u32,
    /// Request that waits for the unit, or `RequestId::NONE`.
    pub owner: RequestId,
    epoch: u32,
}

impl Pick {
    /// Value of `entry` for a unit whose data are not in the buffer, or are read from flash.
    pub const PADDING: u32 = NONE;
}

/// Result of a search for some sectors of a unit in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The buffer holds none of the sectors.
    Nothing,
    /// The buffer holds some of the sectors, in this entry.
    Partly(u32),
    /// The buffer holds all of the sectors, in this entry.
    Whole(u32),
}

/// Reason for an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A host write needs room.
    Room,
    /// The buffer was above its high water mark, and is not yet down to the low one.
    Water,
    /// The data of a read needs room.
    Fill,
}

/// Dirty units that belong to the same program unit.
#[derive(Clone, Copy, Debug, Default)]
struct Dirty {
    /// Units that are not selected for write-back, in the order in which they became dirty.
    waiting: List,
    /// Length of `waiting`.
    count: u32,
    /// Units that are selected for write-back, in the order of selection.
    out: List,
    /// True if the index of this list is in `Buffer::out_order`.
    is_in_order: bool,
}

/// The buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Entry that last held the unit, plus one, or 0. Indexed by logical unit. The unit is still there only if the
    /// entry names it. So an eviction does not touch this table, which is far from the processor (Briggs and Torczon,
    /// "An efficient representation for sparse sets", ACM LOPLAS 2, 1993).
    index: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Sector masks if a unit has more than 64 sectors: `words` words for each entry.
    masks: Vec<u64>,
    words: usize,
    /// Dirty units, indexed by the program unit that they belong to.
    dirty: Vec<Dirty>,
    /// Number of units in all `waiting` lists.
    dirty_units: u32,
    /// Number of units in all `out` lists.
    out_units: u32,
    /// Indices of the lists to write back, next first. A list stays here until its turn, even if it is empty by then.
    out_order: VecDeque<u16>,
    /// Units that are to be read from flash and written with their block or logical page.
    padding: VecDeque<u32>,
    /// Number of units in a logical page; 1 without logical pages.
    together: u32,
    /// Logical pages with a picked unit whose other units are not selected yet.
    pages: VecDeque<u32>,
    eviction: Eviction,
    victims: Vec<u32>,
    /// Entries that will be evicted soon, next one first. A hint for prefetching.
    soon: [u32; 4],
    barriers: Barriers,
    /// Number of entries that will be freed when their writes complete.
    coming: u32,
    /// Number of units of host writes that wait for room.
    waiting: u32,
    above_low_water: bool,
    high: u32,
    low: u32,
    /// Number of units that are dirty or in flight to flash.
    volatile: u64,
    volatile_peak: u64,
    write_back: bool,
    /// True if clean units stay in the buffer.
    keeps: bool,
    protected: bool,
    /// Sector versions for verification, indexed by entry.
    contents: Option<Vec<Vec<u32>>>,
    /// Units of its page that a read from flash reads, a bit each. Indexed by transaction.
    reads: Vec<u64>,
    /// Unit that a write writes back. Indexed by transaction.
    flights: Table<TransactionId, Option<Pick>>,
    /// Picked units that have not become writes, because the firmware processes them first.
    picked: VecDeque<Pick>,
    /// Port of the buffer memory.
    dram: Dram,
    /// Read-ahead, if the device has it.
    ahead: Option<Box<ReadAhead>>,
    /// True if flash transfers only the requested sectors, not whole pages.
    moves_sectors: bool,
    /// Stream and placement hint of the last write of each entry. Empty unless the temperature policy needs them.
    hints: Vec<[u16; 2]>,
    /// Time without requests after which all dirty units are written back.
    idle: Option<Time>,
    /// Counters.
    pub counts: BufferCounts,
}

impl Buffer {
    /// Creates an empty buffer with `lists` lists of dirty units. Returns `None` if the device has no buffer.
    pub fn new(
        device: &DeviceConfig,
        lists: u16,
        seed: u64,
        verify: bool,
        externals: &Externals,
    ) -> Result<Option<Buffer>, String> {
        let Some(config) = device.active_buffer() else { return Ok(None) };
        let units = device.buffer_units();
        let sectors = device.sectors_per_unit();
        let words = sectors.div_ceil(64) as usize;
        let eviction = config.eviction.build(device, seed, externals).map_err(|e| format!("buffer.eviction: {e}"))?;
        let share = |share: f64| libm::floor(share * f64::from(units) + 1e-9) as u32;
        Ok(Some(Buffer {
            index: zeroed(device.logical_units() as usize),
            entries: vec![Entry::NOTHING; units as usize],
            free: (0..units).rev().collect(),
            masks: vec![0; if words > 1 { units as usize * words } else { 0 }],
            words,
            dirty: vec![Dirty::default(); usize::from(lists)],
            dirty_units: 0,
            out_units: 0,
            out_order: VecDeque::with_capacity(usize::from(lists)),
            padding: VecDeque::new(),
            together: if config.write == WritePolicy::WriteBack { device.units_per_logical_page() } else { 1 },
            pages: VecDeque::new(),
            eviction,
            victims: Vec::with_capacity(units as usize),
            soon: [NONE; 4],
            barriers: Barriers::default(),
            coming: 0,
            waiting: 0,
            above_low_water: false,
            high: share(config.high_water),
            low: share(config.low_water),
            volatile: 0,
            volatile_peak: 0,
            write_back: config.write == WritePolicy::WriteBack,
            keeps: config.read,
            protected: config.power_loss_protection,
            contents: verify.then(|| vec![vec![0; sectors as usize]; units as usize]),
            reads: Vec::new(),
            flights: Table::default(),
            picked: VecDeque::new(),
            dram: Dram::new(config, sectors),
            ahead: ReadAhead::new(device).map(Box::new),
            moves_sectors: device.bus.partial_transfer,
            hints: match device.temperature {
                TemperatureConfig::Hints(_) => vec![[0; 2]; units as usize],
                _ => Vec::new(),
            },
            idle: config.idle.map(|idle| idle.time()),
            counts: BufferCounts::default(),
        }))
    }

    /// Returns the fault of an eviction policy that came with another program.
    pub fn fault(&self) -> Option<&Fault> {
        self.eviction.fault()
    }

    /// Stores the stream and the placement hint of the last write of an entry.
    #[inline]
    pub fn note_hints(&mut self, entry: u32, hints: [u16; 2]) {
        if let Some(kept) = self.hints.get_mut(entry as usize) {
            *kept = hints;
        }
    }

    /// Returns the stream and the placement hint of the last write of an entry, if the temperature policy needs them.
    #[inline]
    pub fn hints_of(&self, entry: u32) -> [u16; 2] {
        self.hints.get(entry as usize).copied().unwrap_or_default()
    }

    /// Returns `true` if writes complete when the buffer holds their data.
    #[inline]
    pub fn writes_back(&self) -> bool {
        self.write_back
    }

    /// Returns `true` if clean data stays in the buffer.
    #[inline]
    pub fn keeps_reads(&self) -> bool {
        self.keeps
    }

    /// Returns `true` if the contents of the buffer survive a power cut.
    #[inline]
    pub fn is_protected(&self) -> bool {
        self.protected
    }

    /// Returns the number of units that a power cut would lose, and its maximum so far. They were accepted and are not
    /// programmed. Both numbers are 0 with power-loss protection.
    pub fn volatile_units(&self) -> (u64, u64) {
        if self.protected { (0, 0) } else { (self.volatile, self.volatile_peak) }
    }

    /// Returns how full the buffer is of units that are dirty or in flight to flash.
    pub fn fill_level(&self) -> FillLevel {
        let [_, used] = self.occupancy();
        let (high, capacity) = (u64::from(self.high), self.entries.len() as u64);
        FillLevel { used, high, capacity, written: self.counts.written_back }
    }

    /// Returns `true` if a power cut would lose data of the buffer, or `others`, which the buffer's protection covers.
    pub fn loses_data(&self, others: bool) -> bool {
        !self.protected && (others || self.volatile > 0)
    }

    /// Returns the number of units in the buffer, and the number of units that are dirty or in flight to flash.
    /// The numbers do not depend on power-loss protection.
    pub fn occupancy(&self) -> [u64; 2] {
        [(self.entries.len() - self.free.len()) as u64, self.volatile]
    }

    /// Returns `true` if a power cut would lose data of the unit.
    pub fn is_volatile(&self, lpn: Lpn) -> bool {
        !self.protected && self.is_pending(lpn)
    }

    /// Returns `true` if the buffer holds data of the unit that may not be in flash.
    pub fn is_pending(&self, lpn: Lpn) -> bool {
        self.entry(lpn).is_some_and(|entry| {
            let entry = &self.entries[entry as usize];
            entry.is_dirty() || entry.flights > 0
        })
    }

    /// Returns `true` if an entry is dirty.
    pub fn is_dirty(&self, entry: u32) -> bool {
        self.entries[entry as usize].is_dirty()
    }

    /// Restores a dirty unit that survived a power cut, and adds it to a list. `versions` are its contents, for
    /// verification. Returns its entry, or `None` if the buffer is full.
    pub fn restore(&mut self, lpn: Lpn, sectors: u32, list: u16, versions: Option<&[u32]>) -> Option<u32> {
        if !self.has_room(lpn) {
            return None;
        }
        let counts = self.counts;
        let entry = self.write(lpn, 0, sectors, 0, Some(list));
        if let (Some(contents), Some(versions)) = (&mut self.contents, versions) {
            contents[entry as usize].copy_from_slice(versions);
        }
        self.counts = counts;
        Some(entry)
    }

    /// Returns `true` if no unit is dirty or in flight to flash.
    pub fn is_clean(&self) -> bool {
        !self.has_dirty() && self.out_units == 0 && self.volatile == 0 && self.coming == 0
    }

    /// Drops all units, which must be clean.
    pub fn clear(&mut self) {
        debug_assert!(self.is_clean(), "only clean units are dropped");
        for entry in 0..self.entries.len() as u32 {
            if self.entries[entry as usize].lpn != NONE {
                self.eviction.on_remove(entry);
                self.release(entry);
            }
        }
    }

    /// Returns `true` if the buffer holds no unit.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }

    #[inline]
    fn entry(&self, lpn: Lpn) -> Option<u32> {
        let entry = self.index.get(lpn.index())?.checked_sub(1)?;
        (self.entries[entry as usize].lpn == lpn.0).then_some(entry)
    }

    #[inline]
    fn mask(&self, entry: u32) -> &[u64] {
        match self.words {
            1 => std::slice::from_ref(&self.entries[entry as usize].mask),
            words => &self.masks[entry as usize * words..][..words],
        }
    }

    #[inline]
    fn mask_mut(&mut self, entry: u32) -> &mut [u64] {
        match self.words {
            1 => std::slice::from_mut(&mut self.entries[entry as usize].mask),
            words => &mut self.masks[entry as usize * words..][..words],
        }
    }

    /// Marks the sectors from `first` to before `end` of an entry as held.
    #[inline]
    fn hold(&mut self, entry: u32, first: u32, end: u32) {
        if self.words == 1 {
            self.entries[entry as usize].mask |= bits(first, end);
            return;
        }
        let mask = self.mask_mut(entry);
        words_of(first, end).for_each(|(word, bits)| mask[word] |= bits);
    }

    /// Returns the mask of the sectors that an entry holds.
    pub fn sectors_of(&self, entry: u32) -> &[u64] {
        self.mask(entry)
    }

    /// Returns `true` if an entry holds a sector.
    #[inline]
    pub fn holds(&self, entry: u32, sector: u32) -> bool {
        self.mask(entry)[sector as usize / 64] >> (sector % 64) & 1 == 1
    }

    /// Prefetches the index of a unit.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.index, lpn.index());
    }

    /// Returns how many of the sectors from `first` to before `end` of a unit the buffer holds.
    pub fn find(&self, lpn: Lpn, first: u32, end: u32) -> Found {
        let Some(entry) = self.entry(lpn) else { return Found::Nothing };
        let mask = self.mask(entry);
        let mut some = false;
        let mut all = true;
        for (word, bits) in words_of(first, end) {
            let held = mask[word] & bits;
            some |= held != 0;
            all &= held == bits;
        }
        match (some, all) {
            (_, true) => Found::Whole(entry),
            (true, false) => Found::Partly(entry),
            (false, false) => Found::Nothing,
        }
    }

    /// Reports a read of an entry to the eviction policy.
    pub fn touch(&mut self, entry: u32) {
        if !self.entries[entry as usize].leaving {
            self.eviction.on_access(entry, false, false);
        }
    }

    /// Returns the number of free entries.
    #[inline]
    pub fn room(&self) -> u32 {
        self.free.len() as u32
    }

    /// Returns `true` if there is room for a write of the unit now.
    #[inline]
    pub fn has_room(&self, lpn: Lpn) -> bool {
        self.entry(lpn).is_some() || !self.free.is_empty()
    }

    /// Stores sectors of a host write, for which there must be room, and returns the entry. With write-back, `dirty` is
    /// the list that the unit is added to; with write-through it is `None`.
    pub fn write(&mut self, lpn: Lpn, first: u32, end: u32, version: u32, dirty: Option<u16>) -> u32 {
        let entry = match self.entry(lpn) {
            Some(entry) => {
                self.counts.writes_hit += 1;
                if std::mem::take(&mut self.entries[entry as usize].leaving) {
                    self.coming -= 1;
                    self.eviction.on_insert(entry, lpn, true, false);
                } else {
                    self.eviction.on_access(entry, true, dirty.is_some());
                }
                entry
            }
            None => {
                self.counts.writes_new += 1;
                self.insert(lpn, dirty.is_some(), false)
            }
        };
        self.eviction.on_sectors(entry, first, end);
        self.hold(entry, first, end);
        if let Some(contents) = &mut self.contents {
            contents[entry as usize][first as usize..end as usize].fill(version);
        }
        if let Some(list) = dirty {
            self.note_dirty(entry, list);
        }
        entry
    }

    fn insert(&mut self, lpn: Lpn, dirty: bool, read: bool) -> u32 {
        let entry = self.free.pop().unwrap_or_else(|| unreachable!("a unit is inserted only when there is room"));
        self.index[lpn.index()] = entry + 1;
        self.entries[entry as usize] = Entry::of(lpn.0);
        if self.words > 1 {
            self.mask_mut(entry).fill(0);
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.reset(entry);
        }
        self.eviction.on_insert(entry, lpn, dirty, read);
        entry
    }

    /// Marks an entry as dirty and adds it to a list.
    fn note_dirty(&mut self, entry: u32, list: u16) {
        let state = &mut self.entries[entry as usize];
        if state.is_dirty() {
            return; // The next write-back includes the new sectors.
        }
        if state.flights == 0 {
            self.volatile += 1;
            self.volatile_peak = self.volatile_peak.max(self.volatile);
        }
        (state.dirt, state.list) = (Dirt::Waiting, list);
        state.epoch = self.barriers.add();
        let dirty = &mut self.dirty[usize::from(list)];
        dirty.waiting.push_last(&mut self.entries, entry);
        dirty.count += 1;
        self.dirty_units += 1;
    }

    /// Marks a dirty entry as clean and removes it from its list.
    fn unlink_dirty(&mut self, entry: u32) {
        let state = &mut self.entries[entry as usize];
        let dirty = &mut self.dirty[usize::from(state.list)];
        if std::mem::replace(&mut state.dirt, Dirt::Clean) != Dirt::Waiting {
            self.out_units -= 1;
            return dirty.out.remove(&mut self.entries, entry);
        }
        dirty.waiting.remove(&mut self.entries, entry);
        dirty.count -= 1;
        self.dirty_units -= 1;
    }

    /// Selects a waiting entry for write-back.
    fn send_out(&mut self, entry: u32) {
        self.unlink_dirty(entry);
        let state = &mut self.entries[entry as usize];
        state.dirt = Dirt::Out;
        let list = state.list;
        let dirty = &mut self.dirty[usize::from(list)];
        dirty.out.push_last(&mut self.entries, entry);
        self.out_units += 1;
        if !std::mem::replace(&mut dirty.is_in_order, true) {
            self.out_order.push_back(list);
        }
    }

    /// Adds those sectors from `first` to before `end` of a unit, read from flash, that the buffer does not hold.
    /// Returns `false` if there is no room.
    pub fn fill(&mut self, lpn: Lpn, first: u32, end: u32, versions: Option<&[u32]>) -> bool {
        let entry = match self.entry(lpn) {
            Some(entry) => entry,
            // Host writes that wait for room take priority.
            None if self.free.is_empty() || self.waiting > 0 => return false,
            None => self.insert(lpn, false, true),
        };
        if let Some(versions) = versions
            && let Some(mut contents) = self.contents.take()
        {
            for sector in (first..end).filter(|&sector| !self.holds(entry, sector)) {
                contents[entry as usize][sector as usize] = versions[sector as usize];
            }
            self.contents = Some(contents);
        }
        self.hold(entry, first, end);
        self.counts.fills += 1;
        true
    }

    /// Returns the versions of the sectors that an entry holds, if they are verified.
    pub fn versions(&self, entry: u32) -> &[u32] {
        self.contents.as_ref().map_or(&[], |contents| &contents[entry as usize])
    }

    /// Returns the entry of a unit, if the buffer holds it.
    pub fn entry_of(&self, lpn: Lpn) -> Option<u32> {
        self.entry(lpn)
    }

    /// Drops a unit that was deallocated.
    pub fn forget(&mut self, lpn: Lpn) {
        let Some(entry) = self.entry(lpn) else { return };
        self.counts.dropped += 1;
        let state = self.entries[entry as usize];
        if state.is_dirty() || state.flights > 0 {
            self.volatile -= 1;
        }
        if state.is_dirty() {
            self.unlink_dirty(entry);
            self.barriers.done(state.epoch);
        }
        if state.leaving {
            self.coming -= 1;
        } else {
            self.eviction.on_remove(entry);
        }
        if state.flights == 0 {
            return self.release(entry);
        }
        self.entries[entry as usize].lpn = NONE;
        self.coming += 1;
    }

    /// Frees an entry.
    fn release(&mut self, entry: u32) {
        self.entries[entry as usize] = Entry::NOTHING;
        self.free.push(entry);
    }

    /// Test hook: checks the buffer against a count from scratch. No unit may be in flight to flash.
    pub fn recount(&self) -> Result<(), String> {
        let dirty = self.entries.iter().filter(|entry| entry.is_dirty()).count() as u64;
        if dirty != self.volatile || self.coming != 0 || self.out_units != 0 || self.waiting != 0 {
            return Err(format!(
                "buffer: {dirty} units are dirty, {} volatile; {} entries are being freed and {} units wait at rest",
                self.volatile, self.coming, self.waiting
            ));
        }
        let is_found = |(at, entry): &(usize, &Entry)| self.entry(Lpn(entry.lpn)) == Some(*at as u32);
        let here = self.entries.iter().enumerate().filter(is_found).count();
        let is_reading =
            |(at, _): &(usize, &Entry)| self.ahead.as_ref().is_some_and(|ahead| ahead.is_reading(*at as u32));
        if self.entries.iter().enumerate().filter(is_found).any(|entry| is_reading(&entry)) {
            return Err("buffer: an entry waits for a read ahead at rest".to_owned());
        }
        if here + self.free.len() != self.entries.len() || self.barriers.pending() != dirty {
            return Err(format!(
                "buffer: {here} entries are in use and {} of {} free, {} units are counted by barriers",
                self.free.len(),
                self.entries.len(),
                self.barriers.pending()
            ));
        }
        Ok(())
    }
}

/// Splits the sectors from `first` to before `end` into words of a mask. Returns the index of each word, and its bits.
fn words_of(first: u32, end: u32) -> impl Iterator<Item = (usize, u64)> {
    (first / 64..end.div_ceil(64)).map(move |word| {
        let (from, to) = (first.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
        (word as usize, bits(from, to))
    })
}

/// Returns a word in which the bits from `first` to before `end` are set. There must be at least one.
#[inline]
fn bits(first: u32, end: u32) -> u64 {
    (!0 >> (64 - (end - first))) << first
}
