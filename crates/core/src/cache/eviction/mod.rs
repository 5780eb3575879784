//! Which units leave the buffer when it needs room.

mod by_block;
pub mod external;

use crate::cache::list::NONE;
use crate::external::Fault;
use crate::policy_family;
use crate::sim::id::Lpn;

/// Chooses what leaves the buffer.
///
/// A unit is told of by the number of its entry, from `on_insert` until `take` returns it or `on_remove` takes it
/// back. The policy hears of every change and keeps what it needs of it, so that a choice is no scan.
pub trait EvictionPolicy {
    /// A unit that was not there is in the buffer, `dirty` where flash does not have it. `read` where a read brought
    /// it.
    fn on_insert(&mut self, entry: u32, lpn: Lpn, dirty: bool, read: bool);

    /// A unit was hit: read, or written (`write`), which makes it dirty where `dirty`.
    fn on_access(&mut self, entry: u32, write: bool, dirty: bool);

    /// The host has written the sectors from `first` to before `end` of a unit that the policy has just heard of.
    fn on_sectors(&mut self, _entry: u32, _first: u32, _end: u32) {}

    /// A dirty unit is in flash now and stays.
    fn on_clean(&mut self, entry: u32);

    /// A unit has left without being chosen.
    fn on_remove(&mut self, entry: u32);

    /// Chooses what leaves next: adds it to `victims`, in the order of their addresses where they are several, and
    /// forgets it. Adds none where there is none.
    fn take(&mut self, victims: &mut Vec<u32>);

    /// What would be taken after so many others, if nothing happened before; or `u32::MAX`, where that is not at hand.
    /// No choice hangs on it: it says what to fetch ahead of time.
    fn soon(&self, _after: u32) -> u32 {
        NONE
    }

    /// The units of the aligned blocks that are filled up from flash when units of them are written out, where that is
    /// done.
    fn padded_block(&self) -> Option<u32> {
        None
    }

    /// What went wrong with it, if it came with another program.
    fn fault(&self) -> Option<&Fault> {
        None
    }
}

policy_family! {
    /// Which units leave the buffer when it needs room.
    Eviction / EvictionConfig: dyn EvictionPolicy, or external {
        /// The unit that was not read or written for the longest time.
        lru::Lru = "lru",
        /// The unit that came first.
        fifo::Fifo = "fifo",
        /// The first unit, going round, that was not read or written since the hand last passed it (second chance).
        clock::Clock = "clock",
        /// As `lru`, but of the units in a window at its end the clean ones go first (Park et al. 2006).
        cflru::Cflru = "cflru",
        /// All units of the block that was not written for the longest time, a block written in one go at once; the
        /// rest of the block is read and written with them (Kim and Ahn 2008).
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

/// Worked examples: a policy is played a list of steps, and says what it takes.
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
        /// A read of a unit that is there.
        Read(u32),
        /// A read brings a unit.
        Fill(u32),
        /// A unit has been written to flash.
        Clean(u32),
        /// Room is needed.
        Take,
    }

    /// A device with blocks of four units, and room for eight of them.
    fn device(eviction: &str) -> DeviceConfig {
        let set = ["geometry.pages=4", "geometry.blocks=64", "geometry.mapping_unit=2KiB", "buffer.capacity=16KiB"];
        let mut set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        set.push(format!("buffer.eviction={eviction}"));
        load("hu2011", &set).unwrap_or_else(|error| panic!("{error}"))
    }

    /// What each `Take` took, as units.
    pub fn play(eviction: &str, steps: &[Step]) -> Vec<Vec<u32>> {
        let device = device(eviction);
        let config: &EvictionConfig = &device.buffer.as_ref().unwrap().eviction;
        let mut policy = config.build(&device, 1).unwrap();
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
