//! CFLRU: evicts clean units first, because dropping them costs no program.

use super::EvictionPolicy;
use crate::cache::list::{Linked, Links, List, NONE};
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::Lpn;

/// Options of CFLRU.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CflruConfig {
    /// Window at the end of the LRU list, as a share of the buffer from 0 (as `lru`) to 1, in which clean units are
    /// evicted first.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub window: f64,
}

impl Default for CflruConfig {
    fn default() -> Self {
        CflruConfig { window: 0.25 }
    }
}

/// LRU list with a clean-first region at its end (Park et al., "CFLRU: a replacement algorithm for flash memory", CASES
/// 2006, Section 3). The least recently used clean unit of this window is evicted. If the window has none, the least
/// recently used unit is evicted.
///
/// The clean units of the window are also in a list of their own, in the same order.
#[derive(Clone, Debug)]
pub struct Cflru {
    window: u32,
    /// Units from the most to the least recently used.
    list: List,
    links: Links,
    /// Number of units in the window. `edge` is the most recently used of them.
    inside: u32,
    edge: u32,
    /// Clean units of the window.
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
    fn new(options: &CflruConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
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
    /// Extends the window until it is full. Each unit that enters was used later than those inside.
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

    /// Removes a unit from the list and from the window.
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
        // Insert the unit before the next clean unit that was used earlier. The search stays within the window, and
        // there is one for each program.
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
    fn clean_units_of_the_window_are_evicted_first() {
        use Step::{Clean, Fill, Take, Write};
        // Park et al. 2006, Section 3: P1 is the most recently used unit and P8 the least. P5 to P8 are the window; P5
        // and P7 are clean. LRU evicts P8, then P7. CFLRU evicts P7, then P5.
        let list = [Write(8), Fill(7), Write(6), Fill(5), Fill(4), Write(3), Write(2), Fill(1)];
        let first_two = |policy| {
            let mut steps = list.to_vec();
            steps.extend([Take, Take]);
            play(policy, &steps)
        };
        assert_eq!(first_two("{ cflru = { window = 0.5 } }"), [vec![7], vec![5]]);
        assert_eq!(first_two("{ cflru = { window = 0.0 } }"), [vec![8], vec![7]]);
        // The first four units are dirty: the whole order of the paper, and that of LRU.
        let paper =
            [Write(8), Fill(7), Write(6), Fill(5), Write(4), Write(3), Write(2), Write(1), Take, Take, Take, Take];
        assert_eq!(play("{ cflru = { window = 0.5 } }", &paper), [7, 5, 8, 6].map(|unit| vec![unit]));
        assert_eq!(play("{ cflru = { window = 0.0 } }", &paper), [8, 7, 6, 5].map(|unit| vec![unit]));
        // When 7 leaves, 4 enters the window and is evicted after 5. When 8 leaves, 1 enters. After 1, only dirty units
        // are left.
        let mut steps = list.to_vec();
        steps.extend([Take; 8]);
        let order = [7, 5, 4, 8, 1, 6, 3, 2].map(|unit| vec![unit]);
        assert_eq!(play("{ cflru = { window = 0.5 } }", &steps), order);
        // A unit that becomes clean keeps its position in the order of use.
        let steps = [Write(0), Fill(1), Write(2), Fill(3), Clean(0), Clean(2), Take, Take, Take, Take];
        assert_eq!(play("{ cflru = { window = 1.0 } }", &steps), [vec![0], vec![1], vec![2], vec![3]]);
    }

    #[test]
    fn a_written_unit_is_no_longer_clean() {
        use Step::{Fill, Take, Write};
        let steps = [Fill(0), Fill(1), Write(0), Take, Take];
        assert_eq!(play("{ cflru = { window = 1.0 } }", &steps), [vec![1], vec![0]]);
    }
}
