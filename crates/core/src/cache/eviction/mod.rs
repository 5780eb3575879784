//! Eviction policies: they choose the units that leave the buffer when it needs room.

mod by_block;
pub mod external;

use crate::cache::list::NONE;
use crate::external::Cause;
use crate::policy_family;
use crate::sim::id::Lpn;

/// Chooses the units to evict from the buffer.
///
/// A unit is identified by the number of its entry, from `on_insert` until `take` returns it or `on_remove` is called.
/// The policy is notified of every change and keeps its own lists, so that a choice needs no scan.
pub trait EvictionPolicy {
    /// Notes that a unit was inserted. `dirty` is true if its data is not in flash, and `read` if a read brought it.
    fn on_insert(&mut self, entry: u32, lpn: Lpn, dirty: bool, read: bool);

    /// Notes that a unit was read, or written if `write`. The write makes the unit dirty if `dirty`.
    fn on_access(&mut self, entry: u32, write: bool, dirty: bool);

    /// Notes that the host wrote the sectors from `first` to before `end` of a unit. `on_insert` or `on_access` was
    /// called for the unit before.
    fn on_sectors(&mut self, _entry: u32, _first: u32, _end: u32) {}

    /// Notes that a dirty unit is now in flash, and stays in the buffer.
    fn on_clean(&mut self, entry: u32);

    /// Notes that a unit was removed without having been chosen.
    fn on_remove(&mut self, entry: u32);

    /// Chooses the units to evict next and forgets them. Adds them to `victims` in the order of their addresses, or
    /// adds none if the policy has no units.
    fn take(&mut self, victims: &mut Vec<u32>);

    /// Returns the entry that `take` would choose after `after` others, or `u32::MAX` if it is not known. This is a
    /// hint for prefetching: no choice depends on it.
    fn soon(&self, _after: u32) -> u32 {
        NONE
    }

    /// Returns the size, in units, of the aligned blocks that are filled up from flash when some of their units are
    /// written back. Returns `None` if blocks are not filled up.
    fn padded_block(&self) -> Option<u32> {
        None
    }

    /// Returns the error of an external policy that has failed. The policy is not called again.
    fn error(&self) -> Option<&Cause> {
        None
    }
}

policy_family! {
    /// Policy that chooses the units to evict when the buffer needs room.
    Eviction / EvictionConfig: dyn EvictionPolicy, or external {
        /// The least recently used unit.
        lru::Lru = "lru",
        /// The unit that was inserted first.
        fifo::Fifo = "fifo",
        /// The first unit in circular order without a hit since the hand last passed it (second chance).
        clock::Clock = "clock",
        /// `lru`, but clean units in a window at the end of the list are evicted first (Park et al. 2006).
        cflru::Cflru = "cflru",
        /// All units of the least recently written block, or of one just written sequentially, with the rest of the
        /// block, which is read (Kim and Ahn 2008).
        bplru::Bplru = "bplru",
        /// All units of the block with the most units in the buffer (Jo et al. 2006).
        fab::Fab = "fab",
    }
}

impl Default for EvictionConfig {
    fn default() -> Self {
        EvictionConfig::Lru(Default::default())
    }
}

/// Worked examples: a policy runs a list of steps, and the test compares its choices.
#[cfg(test)]
mod test {
    use super::EvictionConfig;
    use crate::config::{DeviceConfig, load};
    use crate::sim::id::Lpn;

    #[derive(Clone, Copy, Debug)]
    pub enum Step {
        /// A write of a unit, which makes it dirty.
        Write(u32),
        /// A write of some sectors of a unit, from the first to before the second.
        WritePart(u32, u32, u32),
        /// A read of a unit that is in the buffer.
        Read(u32),
        /// A read that adds a unit.
        Fill(u32),
        /// The end of a program, after which a unit is clean.
        Clean(u32),
        /// A choice of victims.
        Take,
    }

    /// Builds a device with blocks of four units, and a buffer of eight units.
    fn device(eviction: &str) -> DeviceConfig {
        let set = ["geometry.pages=4", "geometry.blocks=64", "geometry.mapping_unit=2KiB", "buffer.capacity=16KiB"];
        let mut set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        set.push(format!("buffer.eviction={eviction}"));
        load("hu2011", &set).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs the steps. Returns the units that each `Take` evicts.
    pub fn play(eviction: &str, steps: &[Step]) -> Vec<Vec<u32>> {
        let device = device(eviction);
        let config: &EvictionConfig = &device.buffer.as_ref().unwrap().eviction;
        let mut policy = config.build(&device, 1, &Default::default()).unwrap();
        let mut there: Vec<Option<u32>> = vec![None; device.buffer_units() as usize];
        let mut taken = Vec::new();
        let entry_of = |there: &[Option<u32>], unit| there.iter().position(|held| *held == Some(unit));
        for &step in steps {
            match step {
                Step::Write(unit) | Step::WritePart(unit, ..) | Step::Fill(unit) => {
                    let dirty = !matches!(step, Step::Fill(_));
                    let entry = entry_of(&there, unit);
                    let place = || there.iter().position(Option::is_none).expect("there is room");
                    let number = entry.unwrap_or_else(place) as u32;
                    match entry {
                        Some(_) => policy.on_access(number, dirty, dirty),
                        None => policy.on_insert(number, Lpn(unit), dirty, !dirty),
                    }
                    there[number as usize] = Some(unit);
                    match step {
                        Step::Write(_) => policy.on_sectors(number, 0, device.sectors_per_unit()),
                        Step::WritePart(_, first, end) => policy.on_sectors(number, first, end),
                        _ => {}
                    }
                }
                Step::Read(unit) => policy.on_access(entry_of(&there, unit).unwrap() as u32, false, false),
                Step::Clean(unit) => policy.on_clean(entry_of(&there, unit).unwrap() as u32),
                Step::Take => {
                    let mut victims = Vec::new();
                    policy.take(&mut victims);
                    taken.push(victims.iter().map(|&entry| there[entry as usize].take().unwrap()).collect());
                }
            }
        }
        taken
    }
}
