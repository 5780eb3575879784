//! LRU: evicts the least recently used unit.

use super::EvictionPolicy;
use crate::cache::list::{Links, List};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::Lpn;

/// Options of LRU.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LruConfig {}

/// List of units from the most to the least recently used.
#[derive(Clone, Debug)]
pub struct Lru {
    list: List,
    links: Links,
}

impl Policy for Lru {
    type Config = LruConfig;
    fn new(_: &LruConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Lru { list: List::default(), links: Links::new(device.buffer_units()) })
    }
}

impl EvictionPolicy for Lru {
    fn on_insert(&mut self, entry: u32, _: Lpn, _: bool, _: bool) {
        self.list.push_first(&mut self.links, entry);
    }

    fn on_access(&mut self, entry: u32, _: bool, _: bool) {
        self.list.move_first(&mut self.links, entry);
    }

    fn on_clean(&mut self, _: u32) {}

    fn on_remove(&mut self, entry: u32) {
        self.list.remove(&mut self.links, entry);
    }

    fn take(&mut self, victims: &mut Vec<u32>) {
        victims.extend(self.list.pop_last(&mut self.links));
    }

    fn soon(&self, after: u32) -> u32 {
        self.list.nth_from_last(&self.links, after)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::{Step, play};

    #[test]
    fn the_least_recently_used_unit_is_evicted() {
        use Step::{Read, Take, Write};
        // Units 0 to 3 are written, then 0 is read and 1 is written again. From the oldest, the order is 2, 3, 0, 1.
        let steps = [Write(0), Write(1), Write(2), Write(3), Read(0), Write(1), Take, Take, Take, Take, Take];
        assert_eq!(play("lru", &steps), [vec![2], vec![3], vec![0], vec![1], vec![]]);
    }
}
