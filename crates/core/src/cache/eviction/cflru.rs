//! CFLRU: clean units first, since they cost no program.

use super::EvictionPolicy;
use crate::cache::list::{Linked, Links, List, NONE};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::Lpn;

/// Options of CFLRU.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CflruConfig {
    /// Share of the buffer, at the end of the units that were not used for the longest time, in which clean units go
    /// first; from 0, which is `lru`, to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub window: f64,
}

impl Default for CflruConfig {
    fn default() -> Self {
        CflruConfig { window: 0.25 }
    }
}

/// An LRU list whose end is the clean-first region (Park et al., "CFLRU: a replacement algorithm for flash memory",
/// CASES 2006, Section 3): the least recently used clean unit of the window goes, and where it has none the least
/// recently used unit.
///
/// The clean units of the window have a list of their own, in the same order.
#[derive(Clone, Debug)]
pub struct Cflru {
    window: u32,
    /// From the most to the least recently used.
    list: List,
    links: Links,
    /// Those in the window, and which of them was used last.
    inside: u32,
    edge: u32,
    /// The clean ones among them.
    clean: List,
    clean_links: Links,
    entries: Vec<Marks>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    dirty: bool,
    inside: bool,
}

impl Policy for Cflru {
    type Config = CflruConfig;
    fn check(options: &CflruConfig, _: &DeviceConfig) -> Result<(), String> {
        if (0.0..=1.0).contains(&options.window) {
            Ok(())
        } else {
            Err(format!("window = {}: it is a share of the buffer, from 0 to 1", options.window))
        }
    }

    fn new(options: &CflruConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Self::check(options, device)?;
        let units = device.buffer_units();
        Ok(Cflru {
            window: libm::round(options.window * f64::from(units)) as u32,
            list: List::default(),
            links: Links::new(units),
            inside: 0,
            edge: NONE,
            clean: List::default(),
            clean_links: Links::new(units),
            entries: vec![Marks::default(); units as usize],
        })
    }
}

impl Cflru {
    /// Lets units into the window until it is full: each was used later than those inside.
    fn fill_window(&mut self) {
        while self.inside < self.window {
            let next = if self.edge == NONE { self.list.last() } else { self.links.before(self.edge) };
            if next == NONE {
                return;
            }
            (self.edge, self.inside) = (next, self.inside + 1);
            self.entries[next as usize].inside = true;
            if !self.entries[next as usize].dirty {
                self.clean.push_first(&mut self.clean_links, next);
            }
        }
    }

    /// Takes a unit out of the list, and of the window.
    fn unlink(&mut self, entry: u32) {
        let marks = std::mem::take(&mut self.entries[entry as usize]);
        if marks.inside {
            self.inside -= 1;
            if self.edge == entry {
                self.edge = self.links.behind(entry);
            }
            if !marks.dirty {
                self.clean.remove(&mut self.clean_links, entry);
            }
        }
        self.list.remove(&mut self.links, entry);
    }

    fn link(&mut self, entry: u32, dirty: bool) {
        self.entries[entry as usize].dirty = dirty;
        self.list.push_first(&mut self.links, entry);
        self.fill_window();
    }
}

impl EvictionPolicy for Cflru {
    fn on_insert(&mut self, entry: u32, _: Lpn, dirty: bool, _: bool) {
        self.link(entry, dirty);
    }

    fn on_access(&mut self, entry: u32, _: bool, dirty: bool) {
        let dirty = dirty || self.entries[entry as usize].dirty;
        self.unlink(entry);
        self.link(entry, dirty);
    }

    fn on_clean(&mut self, entry: u32) {
        let marks = &mut self.entries[entry as usize];
        if !std::mem::replace(&mut marks.dirty, false) || !marks.inside {
            return;
        }
        // Its place among the clean ones is in front of the next of them that was used before it: no further than the
        // window goes, and once for each program.
        let mut older = self.links.behind(entry);
        while older != NONE && self.entries[older as usize].dirty {
            older = self.links.behind(older);
        }
        match older {
            NONE => self.clean.push_last(&mut self.clean_links, entry),
            older => self.clean.insert_before(&mut self.clean_links, entry, older),
        }
    }

    fn on_remove(&mut self, entry: u32) {
        self.unlink(entry);
        self.fill_window();
    }

    fn take(&mut self, victims: &mut Vec<u32>) {
        let victim = if self.clean.is_empty() { self.list.last() } else { self.clean.last() };
        if victim != NONE {
            self.on_remove(victim);
            victims.push(victim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::{Step, play};

    #[test]
    fn clean_units_of_the_window_go_first() {
        use Step::{Clean, Fill, Take, Write};
        // Park et al. 2006, Section 3: from the most recently used P1 to P8, of which P5 to P8 are the window, with P5
        // and P7 clean. LRU takes P8, then P7; CFLRU P7, then P5.
        let list = [Write(8), Fill(7), Write(6), Fill(5), Fill(4), Write(3), Write(2), Fill(1)];
        let first_two = |policy| {
            let mut steps = list.to_vec();
            steps.extend([Take, Take]);
            play(policy, &steps)
        };
        assert_eq!(first_two("{ cflru = { window = 0.5 } }"), [vec![7], vec![5]]);
        assert_eq!(first_two("{ cflru = { window = 0.0 } }"), [vec![8], vec![7]]);
        // With the first four dirty, the paper's whole order, and that of LRU.
        let paper =
            [Write(8), Fill(7), Write(6), Fill(5), Write(4), Write(3), Write(2), Write(1), Take, Take, Take, Take];
        assert_eq!(play("{ cflru = { window = 0.5 } }", &paper), [7, 5, 8, 6].map(|unit| vec![unit]));
        assert_eq!(play("{ cflru = { window = 0.0 } }", &paper), [8, 7, 6, 5].map(|unit| vec![unit]));
        // With 7 gone, 4 comes into the window, and goes after 5; then 1 comes in last, and only dirty ones are left.
        let mut steps = list.to_vec();
        steps.extend([Take; 8]);
        let order = [7, 5, 4, 8, 1, 6, 3, 2].map(|unit| vec![unit]);
        assert_eq!(play("{ cflru = { window = 0.5 } }", &steps), order);
        // A unit that becomes clean takes its place in the order of use.
        let steps = [Write(0), Fill(1), Write(2), Fill(3), Clean(0), Clean(2), Take, Take, Take, Take];
        assert_eq!(play("{ cflru = { window = 1.0 } }", &steps), [vec![0], vec![1], vec![2], vec![3]]);
    }

    #[test]
    fn a_written_unit_is_not_clean_any_more() {
        use Step::{Fill, Take, Write};
        let steps = [Fill(0), Fill(1), Write(0), Take, Take];
        assert_eq!(play("{ cflru = { window = 1.0 } }", &steps), [vec![1], vec![0]]);
    }
}
