//! CLOCK: FIFO with a second chance.

use super::EvictionPolicy;
use crate::cache::list::{Links, List};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::Lpn;

/// Options of CLOCK.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockConfig {}

/// Ring of units with a mark on those that were hit (Corbató, "A paging experiment with the Multics system", 1969).
///
/// The hand points at the front of the list. If that unit is marked, the mark is cleared and the unit moves to the
/// back, which advances the hand. An unmarked unit is evicted. Each hit causes at most one extra step.
#[derive(Clone, Debug)]
pub struct Clock {
    list: List,
    links: Links,
    hit: Vec<bool>,
}

impl Policy for Clock {
    type Config = ClockConfig;
    fn new(_: &ClockConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let units = device.buffer_units();
        Ok(Clock { list: List::default(), links: Links::new(units), hit: vec![false; units as usize] })
    }
}

impl EvictionPolicy for Clock {
    fn on_insert(&mut self, entry: u32, _: Lpn, _: bool, _: bool) {
        self.hit[entry as usize] = false;
        self.list.push_last(&mut self.links, entry);
    }

    fn on_access(&mut self, entry: u32, _: bool, _: bool) {
        self.hit[entry as usize] = true;
    }

    fn on_clean(&mut self, _: u32) {}

    fn on_remove(&mut self, entry: u32) {
        self.list.remove(&mut self.links, entry);
    }

    fn take(&mut self, victims: &mut Vec<u32>) {
        while let Some(entry) = self.list.pop_first(&mut self.links) {
            if !std::mem::take(&mut self.hit[entry as usize]) {
                return victims.push(entry);
            }
            self.list.push_last(&mut self.links, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::{Step, play};

    #[test]
    fn a_hit_gives_a_second_chance() {
        use Step::{Read, Take, Write};
        // The hand passes 0 and 1, which were hit, and evicts 2 and 3. Then it evicts 0 and 1, whose marks are cleared.
        let steps = [Write(0), Write(1), Write(2), Write(3), Read(0), Write(1), Take, Take, Take, Take];
        assert_eq!(play("clock", &steps), [vec![2], vec![3], vec![0], vec![1]]);
        // All units were hit: after one round, the first one is evicted.
        let steps = [Write(0), Write(1), Read(0), Read(1), Take, Take];
        assert_eq!(play("clock", &steps), [vec![0], vec![1]]);
    }
}
