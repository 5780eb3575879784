//! FIFO: evicts the unit that was inserted first.

use super::EvictionPolicy;
use crate::cache::list::{Links, List};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::Lpn;

/// Options of FIFO.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FifoConfig {}

/// List of units in the order of their insertion. Hits do not change it.
#[derive(Clone, Debug)]
pub struct Fifo {
    list: List,
    links: Links,
}

impl Policy for Fifo {
    type Config = FifoConfig;
    fn new(_: &FifoConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(Fifo { list: List::default(), links: Links::new(device.buffer_units()) })
    }
}

impl EvictionPolicy for Fifo {
    fn on_insert(&mut self, entry: u32, _: Lpn, _: bool, _: bool) {
        self.list.push_last(&mut self.links, entry);
    }

    fn on_access(&mut self, _: u32, _: bool, _: bool) {}

    fn on_clean(&mut self, _: u32) {}

    fn on_remove(&mut self, entry: u32) {
        self.list.remove(&mut self.links, entry);
    }

    fn take(&mut self, victims: &mut Vec<u32>) {
        victims.extend(self.list.pop_first(&mut self.links));
    }

    fn soon(&self, after: u32) -> u32 {
        self.list.nth_from_first(&self.links, after)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::{Step, play};

    #[test]
    fn hits_do_not_change_the_order() {
        use Step::{Read, Take, Write};
        let steps = [Write(0), Write(1), Write(2), Read(0), Write(0), Take, Take, Write(3), Take, Take];
        assert_eq!(play("fifo", &steps), [vec![0], vec![1], vec![2], vec![3]]);
    }
}
