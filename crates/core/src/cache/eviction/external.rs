//! External eviction policy: supplied by the program that runs the device.

use super::EvictionPolicy;
use crate::cache::list::NONE;
use crate::config::DeviceConfig;
pub use crate::config::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{Cause, Externals, Fault, Guard, Wanted, invalid, outside_policies};
use crate::sim::id::Lpn;

outside_policies!(EvictionPolicy);

/// Reports every change to an external policy, and checks its choices. After a failure, the unit in the lowest entry is
/// evicted.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn EvictionPolicy>,
    /// Units in the buffer. Indexed by entry.
    units: Vec<Option<Lpn>>,
    /// Logical units that the latest call evicts, with their entries.
    evicted: Vec<(Lpn, u32)>,
    padded_block: Option<u32>,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<External, String> {
        let wanted = Wanted { path: "buffer.eviction", config, device, seed };
        let guard = Guard::<dyn EvictionPolicy>::new(externals, wanted)?;
        let entries = device.buffer_units() as usize;
        Ok(External {
            padded_block: guard.policy().and_then(|policy| policy.padded_block()),
            guard,
            units: vec![None; entries],
            evicted: Vec::with_capacity(entries),
        })
    }

    /// Returns the fault of the policy.
    pub fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }

    /// Moves the units in the `chosen` entries to `evicted`.
    fn evict(&mut self, chosen: &[u32]) -> Result<(), Cause> {
        if chosen.is_empty() {
            return Err(invalid(format!("chose nothing of {} units", self.units.iter().flatten().count())));
        }
        for &entry in chosen {
            let unit = self.units.get_mut(entry as usize).and_then(Option::take);
            let unit = unit.ok_or_else(|| no_unit(entry.into(), self.units.len()))?;
            self.evicted.push((unit, entry));
        }
        Ok(())
    }
}

/// Returns the error that a policy has chosen an entry without a unit.
pub fn no_unit(chosen: i64, entries: usize) -> Cause {
    invalid(format!("chose entry {chosen}, which holds no unit or was chosen twice (the buffer has {entries} entries)"))
}

impl EvictionPolicy for External {
    fn on_insert(&mut self, entry: u32, lpn: Lpn, dirty: bool, read: bool) {
        self.units[entry as usize] = Some(lpn);
        self.guard.ask(|policy| policy.on_insert(entry, lpn, dirty, read));
    }

    fn on_access(&mut self, entry: u32, write: bool, dirty: bool) {
        self.guard.ask(|policy| policy.on_access(entry, write, dirty));
    }

    fn on_sectors(&mut self, entry: u32, first: u32, end: u32) {
        self.guard.ask(|policy| policy.on_sectors(entry, first, end));
    }

    fn on_clean(&mut self, entry: u32) {
        self.guard.ask(|policy| policy.on_clean(entry));
    }

    fn on_remove(&mut self, entry: u32) {
        self.units[entry as usize] = None;
        self.guard.ask(|policy| policy.on_remove(entry));
    }

    fn take(&mut self, victims: &mut Vec<u32>) {
        if self.units.iter().all(Option::is_none) {
            return;
        }
        let before = victims.len();
        self.evicted.clear();
        if self.guard.ask(|policy| policy.take(victims)).is_some() {
            let checked = self.evict(&victims[before..]);
            self.guard.accept(checked);
        }
        if self.evicted.is_empty()
            && let Some(entry) = self.units.iter().position(Option::is_some)
            && let Some(unit) = self.units[entry].take()
        {
            self.evicted.push((unit, entry as u32));
        }
        self.evicted.sort_unstable();
        victims.truncate(before);
        victims.extend(self.evicted.iter().map(|&(_, entry)| entry));
    }

    fn soon(&self, after: u32) -> u32 {
        self.guard.policy().map_or(NONE, |policy| policy.soon(after))
    }

    fn padded_block(&self) -> Option<u32> {
        self.padded_block
    }
}
