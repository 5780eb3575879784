//! External eviction policy: supplied by the program that runs the device.

use std::collections::BTreeSet;

use super::EvictionPolicy;
use crate::config::DeviceConfig;
pub use crate::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{ExternalEviction, Fault, Guard, Wanted};
use crate::sim::id::Lpn;

/// Reports every change to an external policy, and checks its choices. After a failure, the unit in the lowest entry is
/// evicted.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalEviction>,
    /// Entries that hold a unit.
    there: BTreeSet<u32>,
    /// Logical unit, indexed by entry.
    lpns: Vec<u32>,
    chosen: Vec<i64>,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        let wanted = Wanted { path: "buffer.eviction", config, seed };
        let made = device.makers.provider(wanted)?.eviction(wanted, device.buffer_units());
        Ok(External {
            guard: Guard::new(wanted, made),
            there: BTreeSet::new(),
            lpns: vec![0; device.buffer_units() as usize],
            chosen: Vec::new(),
        })
    }

    /// Moves the chosen entries from `there` to `victims`.
    fn accept(&mut self, victims: &mut Vec<u32>) -> Result<(), String> {
        if self.chosen.is_empty() {
            return Err(format!("chose nothing of {} units", self.there.len()));
        }
        for &chosen in &self.chosen {
            let entry = u32::try_from(chosen).ok().filter(|entry| self.there.remove(entry));
            victims.push(entry.ok_or_else(|| {
                format!("chose entry {chosen}, which holds no unit or was chosen twice (the buffer has {} entries)", {
                    self.lpns.len()
                })
            })?);
        }
        Ok(())
    }
}

impl EvictionPolicy for External {
    fn on_insert(&mut self, entry: u32, lpn: Lpn, dirty: bool, read: bool) {
        self.there.insert(entry);
        self.lpns[entry as usize] = lpn.0;
        self.guard.ask(|policy| policy.on_insert(entry, lpn.0, dirty, read));
    }

    fn on_access(&mut self, entry: u32, write: bool, dirty: bool) {
        self.guard.ask(|policy| policy.on_access(entry, write, dirty));
    }

    fn on_clean(&mut self, entry: u32) {
        self.guard.ask(|policy| policy.on_clean(entry));
    }

    fn on_remove(&mut self, entry: u32) {
        self.there.remove(&entry);
        self.guard.ask(|policy| policy.on_remove(entry));
    }

    fn take(&mut self, victims: &mut Vec<u32>) {
        if self.there.is_empty() {
            return;
        }
        let before = victims.len();
        self.chosen.clear();
        let chosen = &mut self.chosen;
        if self.guard.ask(|policy| policy.choose(chosen)).is_some()
            && let Err(what) = self.accept(victims)
        {
            self.guard.refuse(what);
        }
        if victims.len() == before {
            victims.extend(self.there.pop_first());
        }
        victims[before..].sort_unstable_by_key(|&entry| self.lpns[entry as usize]);
    }

    fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}
