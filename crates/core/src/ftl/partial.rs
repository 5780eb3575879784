//! Sector masks: the sectors of a unit that have ever been written. They are kept for partly written units only.

use std::collections::BTreeMap;

use crate::state::{Reader, StateError, Writer};

/// Effect of a write on the valid sectors of its unit (Hu et al. 2011, Section 4.1 and Figure 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The unit has no valid sector.
    First,
    /// The new data replaces all valid sectors.
    Covered,
    /// Some valid sectors remain and have to be read.
    Uncovered,
}

/// Sector masks of units that are mapped and not whole.
///
/// A bit represents a sector. If a unit has more than 64 sectors, a bit represents a granule: a 64th, rounded up, and
/// for the last bit the remaining sectors. Most devices never have a partly written unit. Until the first one, nothing
/// is looked up. After that, one bit per unit shows whether it has a mask.
#[derive(Clone, Debug)]
pub struct PartialUnits {
    masks: BTreeMap<u32, u64>,
    flags: Vec<u64>,
    units: u32,
    sectors: u32,
    granule: u32,
    full: u64,
}

impl PartialUnits {
    /// Creates the masks of `units` units with `sectors` sectors each. No unit is partly written.
    pub fn new(units: u32, sectors: u32) -> PartialUnits {
        let granule = sectors.div_ceil(64);
        let full = !0 >> (64 - sectors.div_ceil(granule));
        PartialUnits { masks: BTreeMap::new(), flags: Vec::new(), units, sectors, granule, full }
    }

    /// Returns two masks of the sectors from `first` to before `end`: granules that are touched, and granules that are
    /// covered.
    fn masks_of(&self, first: u32, end: u32) -> (u64, u64) {
        let bits = |from: u32, to: u32| -> u64 { if from >= to { 0 } else { (!0u64 >> (64 - (to - from))) << from } };
        let touched = bits(first / self.granule, end.div_ceil(self.granule));
        // The last granule may be shorter than the others.
        let whole_end = if end == self.sectors { end.div_ceil(self.granule) } else { end / self.granule };
        let whole = bits(first.div_ceil(self.granule), whole_end);
        (touched, whole)
    }

    fn has_mask(&self, lpn: u32) -> bool {
        !self.masks.is_empty() && self.flags[(lpn / 64) as usize] >> (lpn % 64) & 1 == 1
    }

    /// Notes a write of the sectors from `first` to before `end` of a unit. Returns its effect.
    #[inline(always)]
    pub fn write(&mut self, lpn: u32, mapped: bool, first: u32, end: u32) -> Update {
        if first == 0 && end == self.sectors {
            if mapped && self.has_mask(lpn) {
                self.forget(lpn);
            }
            return if mapped { Update::Covered } else { Update::First };
        }
        self.write_part(lpn, mapped, first, end)
    }

    /// Notes a write of the sectors whose bits are set, like [`PartialUnits::write`].
    pub fn write_set(&mut self, lpn: u32, mapped: bool, set: &[u64]) -> Update {
        let sectors = self.sectors;
        let last = !0u64 >> (64 - (sectors - 1) % 64 - 1);
        if set[..set.len() - 1].iter().all(|&word| word == !0) && set[set.len() - 1] == last {
            return self.write(lpn, mapped, 0, sectors);
        }
        let held = |sector: u32| set[sector as usize / 64] >> (sector % 64) & 1 == 1;
        let (mut touched, mut whole) = (0, 0);
        for granule in 0..sectors.div_ceil(self.granule) {
            let mut of_granule = granule * self.granule..sectors.min((granule + 1) * self.granule);
            touched |= u64::from(of_granule.clone().any(held)) << granule;
            whole |= u64::from(of_granule.all(held)) << granule;
        }
        self.write_granules(lpn, mapped, touched, whole)
    }

    #[cold]
    fn write_part(&mut self, lpn: u32, mapped: bool, first: u32, end: u32) -> Update {
        let (touched, whole) = self.masks_of(first, end);
        self.write_granules(lpn, mapped, touched, whole)
    }

    fn write_granules(&mut self, lpn: u32, mapped: bool, touched: u64, whole: u64) -> Update {
        let old = match (mapped, self.has_mask(lpn)) {
            (false, _) => 0,
            (true, true) => self.masks.get(&lpn).copied().unwrap_or(self.full),
            (true, false) => self.full,
        };
        let new = old | touched;
        if new == self.full {
            self.forget(lpn);
        } else {
            self.insert(lpn, new);
        }
        match old {
            0 => Update::First,
            _ if old & !whole == 0 => Update::Covered,
            _ => Update::Uncovered,
        }
    }

    /// Returns the number of sectors of a mapped unit that have been written, counted in whole granules.
    pub fn written(&self, lpn: u32) -> u32 {
        let last = self.sectors.div_ceil(self.granule) - 1;
        match self.mask(lpn) {
            0 => self.sectors,
            mask if mask >> last & 1 == 1 => {
                (mask.count_ones() - 1) * self.granule + self.sectors - last * self.granule
            }
            mask => mask.count_ones() * self.granule,
        }
    }

    /// Returns the mask of a unit that is not whole; 0 for others.
    pub fn mask(&self, lpn: u32) -> u64 {
        if self.has_mask(lpn) { self.masks.get(&lpn).copied().unwrap_or_default() } else { 0 }
    }

    /// Restores the mask of a mapped unit, which [`PartialUnits::mask`] returned.
    pub fn restore(&mut self, lpn: u32, mask: u64) {
        if mask != 0 && mask & !self.full == 0 && mask != self.full {
            self.insert(lpn, mask);
        }
    }

    /// Writes the masks to a saved state.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        out.u32(self.masks.len() as u32)?;
        for (&lpn, &mask) in &self.masks {
            out.u32(lpn)?;
            out.u64(mask)?;
        }
        Ok(())
    }

    /// Reads what [`PartialUnits::save`] wrote. Only units that `is_mapped` accepts have masks.
    pub fn load(&mut self, input: &mut Reader, is_mapped: impl Fn(u32) -> bool) -> Result<(), StateError> {
        let mut least = 0;
        for _ in 0..input.below(self.units + 1, "masks")? {
            let lpn = input.below(self.units, "logical unit")?;
            let mask = input.u64()?;
            let partly = mask != 0 && mask != self.full && mask & !self.full == 0;
            if lpn < least || !partly || !is_mapped(lpn) {
                return Err(input.damaged(format!("the mask of unit {lpn}")));
            }
            self.insert(lpn, mask);
            least = lpn + 1;
        }
        Ok(())
    }

    fn insert(&mut self, lpn: u32, mask: u64) {
        if self.flags.is_empty() {
            self.flags = vec![0; self.units.div_ceil(64) as usize];
        }
        self.flags[(lpn / 64) as usize] |= 1 << (lpn % 64);
        self.masks.insert(lpn, mask);
    }

    /// Drops the mask of a unit that is whole or unmapped now.
    #[inline]
    pub fn forget(&mut self, lpn: u32) {
        if self.has_mask(lpn) {
            self.masks.remove(&lpn);
            self.flags[(lpn / 64) as usize] &= !(1 << (lpn % 64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_distinguished_by_sector() {
        // Hu et al. 2011, Figure 9, with its page of four sectors.
        let mut units = PartialUnits::new(10, 4);
        assert_eq!(units.write(7, false, 1, 3), Update::First);
        assert_eq!(units.write(7, true, 0, 3), Update::Covered, "sectors 0-2 over the valid 1-2");
        assert_eq!(units.write(7, true, 3, 4), Update::Uncovered);
        assert_eq!(units.write(7, true, 0, 3), Update::Uncovered, "sector 3 is valid and stays");
        assert_eq!(units.write(7, true, 0, 4), Update::Covered);
        assert_eq!(units.write(8, false, 0, 4), Update::First);
        assert_eq!(units.write(8, true, 0, 1), Update::Uncovered);
    }

    #[test]
    fn trimmed_units_have_no_valid_sectors() {
        let mut units = PartialUnits::new(10, 8);
        units.write(1, false, 2, 3);
        units.forget(1);
        assert_eq!(units.write(1, false, 0, 1), Update::First);
        assert_eq!(units.write(1, true, 0, 1), Update::Covered);
    }

    #[test]
    fn large_units_count_in_64ths() {
        let mut units = PartialUnits::new(10, 512);
        assert_eq!(units.write(0, false, 0, 8), Update::First);
        assert_eq!(units.write(0, true, 0, 8), Update::Covered);
        assert_eq!(units.write(0, true, 0, 7), Update::Uncovered, "not all of the granule is replaced");
    }

    #[test]
    fn the_last_granule_may_be_shorter() {
        // 80 KiB: 160 sectors, in 53 granules of three sectors and one of a single sector.
        let units = || PartialUnits::new(10, 160);
        let last = |units: &mut PartialUnits, mapped| units.write(0, mapped, 159, 160);
        let (mut filled, mut empty) = (units(), units());
        assert_eq!(filled.write(0, false, 0, 160), Update::First);
        assert_eq!(filled.write(0, true, 0, 159), Update::Uncovered, "the last sector stays");
        assert_eq!(filled.mask(0), 0, "the unit is still whole");
        assert_eq!((last(&mut empty, false), last(&mut empty, true)), (Update::First, Update::Covered));
        assert_eq!(empty.mask(0), 1 << 53);
        assert_eq!(empty.write(0, true, 0, 159), Update::Uncovered);
        assert_eq!(empty.mask(0), 0, "the unit is whole now");
        // Repeat this with sets of sectors.
        let set = |first: usize, end: usize| {
            let mut set = [0; 3];
            (first..end).for_each(|sector| set[sector / 64] |= 1 << (sector % 64));
            set
        };
        let mut units = units();
        assert_eq!(units.write_set(0, false, &set(159, 160)), Update::First);
        assert_eq!(units.write_set(0, true, &set(159, 160)), Update::Covered);
        assert_eq!(units.write_set(0, true, &set(0, 159)), Update::Uncovered);
        assert_eq!(units.write_set(0, true, &set(0, 160)), Update::Covered);
    }

    #[test]
    fn a_range_has_the_effect_of_the_set_of_its_sectors() {
        for sectors in [1u32, 7, 63, 64, 65, 100, 127, 128, 129, 160, 200, 1000] {
            let words = sectors.div_ceil(64) as usize;
            let (mut ranges, mut sets) = (PartialUnits::new(1, sectors), PartialUnits::new(1, sectors));
            let mut rng = crate::sim::rng::Rng::new(u64::from(sectors), "ranges");
            for step in 0..300 {
                // The unit is trimmed from time to time.
                if step % 10 == 0 {
                    ranges.forget(0);
                    sets.forget(0);
                }
                let first = rng.below(sectors.into()) as u32;
                let end =
                    if rng.below(3) == 0 { sectors } else { first + 1 + rng.below((sectors - first).into()) as u32 };
                let mut set = vec![0; words];
                (first..end).for_each(|sector| set[sector as usize / 64] |= 1 << (sector % 64));
                let mapped = step % 10 > 0;
                assert_eq!(ranges.write(0, mapped, first, end), sets.write_set(0, mapped, &set), "{first}..{end}");
                assert_eq!(ranges.mask(0), sets.mask(0), "{first}..{end} of {sectors}");
            }
        }
    }
}
