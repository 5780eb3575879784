//! Two-level LRU classifier: a list of hot units, and a list of candidates.

use super::{TemperaturePolicy, share_of};
use crate::config::DeviceConfig;
use crate::ftl::temperature::written::Written;
use crate::policy::Policy;
use crate::sim::list::{Linked, Links, List, NONE};
use crate::state::{Reader, StateError, Writer};

/// Options of the two-level LRU classifier.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TwoLevelLruConfig {
    /// Length of the list of hot units, as a share of the host's units.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub hot: f64,
    /// Length of the list of candidates, as a share of the host's units.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub candidates: f64,
}

impl Default for TwoLevelLruConfig {
    /// Assumed: shares for workloads in which a fifth of the data receives most writes.
    fn default() -> Self {
        TwoLevelLruConfig { hot: 0.1, candidates: 0.1 }
    }
}

/// A unit that is written becomes the first candidate. If it is written again while it is a candidate, it becomes the
/// first of the hot list, and is hot from then on. A unit that falls off the end of the hot list becomes a candidate
/// again (Chang and Kuo, "An adaptive striping architecture for flash memory storage systems of embedded systems", RTAS
/// 2002).
///
/// A write takes one step. The lists take 4 bytes for each unit of the host, and 13 for each list entry.
#[derive(Clone, Debug)]
pub struct TwoLevelLru {
    /// List entry of each unit, or [`NONE`]. Indexed by unit.
    place: Vec<u32>,
    /// Unit of each list entry.
    unit: Vec<u32>,
    links: Links,
    /// Hot units, and candidates.
    lists: [List; 2],
    lengths: [u32; 2],
    max_lengths: [u32; 2],
    /// True if a list entry is in the hot list.
    hot: Vec<bool>,
}

const HOT: usize = 0;
const CANDIDATES: usize = 1;

impl Policy for TwoLevelLru {
    type Config = TwoLevelLruConfig;

    fn new(options: &TwoLevelLruConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let units = device.logical_units();
        Ok(TwoLevelLru::of(units as u32, share_of(units, options.hot), share_of(units, options.candidates)))
    }
}

impl TwoLevelLru {
    fn of(units: u32, hot: u32, candidates: u32) -> TwoLevelLru {
        let places = hot + candidates;
        TwoLevelLru {
            place: vec![NONE; units as usize],
            unit: vec![NONE; places as usize],
            links: Links::new(places),
            lists: Default::default(),
            lengths: [0; 2],
            max_lengths: [hot, candidates],
            hot: vec![false; places as usize],
        }
    }

    fn join(&mut self, list: usize, place: u32) {
        self.lists[list].push_first(&mut self.links, place);
        self.lengths[list] += 1;
        self.hot[place as usize] = list == HOT;
    }

    fn leave(&mut self, list: usize, place: u32) {
        self.lists[list].remove(&mut self.links, place);
        self.lengths[list] -= 1;
    }

    /// Removes and returns the last entry of a list that is too long.
    fn last_too_many(&mut self, list: usize) -> Option<u32> {
        let last = self.lists[list].last();
        (self.lengths[list] > self.max_lengths[list]).then(|| {
            self.leave(list, last);
            last
        })
    }

    /// Returns an unused list entry. There is one whenever the candidates are not full.
    fn free_place(&self) -> u32 {
        let used = self.lengths[HOT] + self.lengths[CANDIDATES];
        debug_assert!((used as usize) < self.unit.len());
        used
    }

    fn insert(&mut self, lpn: u32) {
        let full = self.lengths[CANDIDATES] == self.max_lengths[CANDIDATES];
        let place = if full { self.lists[CANDIDATES].last() } else { self.free_place() };
        if full {
            self.leave(CANDIDATES, place);
            self.place[self.unit[place as usize] as usize] = NONE;
        }
        (self.unit[place as usize], self.place[lpn as usize]) = (lpn, place);
        self.join(CANDIDATES, place);
    }

    /// Moves a candidate that was written again to the hot list. If a unit falls off the hot list, it becomes a
    /// candidate, so the lists together keep their length.
    fn promote(&mut self, place: u32) {
        self.leave(CANDIDATES, place);
        self.join(HOT, place);
        if let Some(last) = self.last_too_many(HOT) {
            self.join(CANDIDATES, last);
        }
    }
}

impl TemperaturePolicy for TwoLevelLru {
    fn classify(&mut self, written: Written) -> u8 {
        match self.place[written.lpn as usize] {
            NONE => self.insert(written.lpn),
            place if self.hot[place as usize] => self.lists[HOT].move_first(&mut self.links, place),
            place => self.promote(place),
        }
        u8::from(self.hot[self.place[written.lpn as usize] as usize])
    }

    /// Writes the units of both lists, the last written first.
    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        for list in [HOT, CANDIDATES] {
            out.u32(self.lengths[list])?;
            let mut place = self.lists[list].first();
            while place != NONE {
                out.u32(self.unit[place as usize])?;
                place = self.links.behind(place);
            }
        }
        Ok(())
    }

    fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        for list in [HOT, CANDIDATES] {
            let count = input.below(self.max_lengths[list] + 1, "units in a list")?;
            let mut units = Vec::with_capacity(count as usize);
            for _ in 0..count {
                units.push(input.below(self.place.len() as u32, "unit")?);
            }
            for &lpn in units.iter().rev() {
                let place = self.free_place();
                if std::mem::replace(&mut self.place[lpn as usize], place) != NONE {
                    return Err(input.damaged(format!("unit {lpn} is twice among those written last")));
                }
                self.unit[place as usize] = lpn;
                self.join(list, place);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_rise_and_fall() {
        // There are two hot units and two candidates.
        let mut lists = TwoLevelLru::of(10, 2, 2);
        let mut write = |lpn| lists.classify(Written { lpn, ..Written::default() });
        // All are new, and become candidates. The third pushes out the first, which is then new again.
        assert_eq!([1, 2, 3, 1].map(&mut write), [0; 4]);
        // The candidates are 1 and 3, the last written first. Both become hot.
        assert_eq!([3, 1, 3].map(&mut write), [1; 3]);
        // 4 becomes a candidate, and then hot. So 1, the hot unit written longest ago, becomes a candidate. It becomes
        // hot again as soon as it is written.
        assert_eq!([4, 4, 1].map(&mut write), [0, 1, 1]);
        // This has made 3 a candidate. 5 and 6 push it out of the lists.
        assert_eq!([5, 6, 3].map(&mut write), [0; 3]);
        assert_eq!(lists.lengths, [2, 2]);
    }
}
