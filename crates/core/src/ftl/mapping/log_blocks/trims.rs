//! The list of trimmed units whose data is still in flash. Merges skip them.

use crate::config::DeviceConfig;
use crate::sim::id::Lpn;
use crate::state::{Reader, StateError, Writer};

/// Trimmed units that no merge has seen. In the simulator a trimmed unit is invalid at once, so that a merge skips it
/// anyway. The list shows what a controller would have to keep until then (Yoo et al. 2013, Section III).
#[derive(Clone, Debug)]
pub struct Trims {
    /// A bit for each unit.
    listed: Vec<u64>,
    /// Number of units in the list.
    pub length: u64,
}

impl Trims {
    pub(super) fn new(device: &DeviceConfig) -> Trims {
        Trims { listed: vec![0; device.logical_units().div_ceil(64) as usize], length: 0 }
    }

    /// Adds a unit whose data is in flash.
    pub fn trimmed(&mut self, lpn: Lpn) {
        let word = &mut self.listed[(lpn.0 / 64) as usize];
        let bit = 1 << (lpn.0 % 64);
        self.length += u64::from(*word & bit == 0);
        *word |= bit;
    }

    /// Removes a unit that the host writes, or whose logical block was merged. Returns `true` if it was in the list.
    #[inline]
    pub fn remove(&mut self, lpn: Lpn) -> bool {
        let word = &mut self.listed[(lpn.0 / 64) as usize];
        let bit = 1 << (lpn.0 % 64);
        let was_listed = *word & bit != 0;
        *word &= !bit;
        self.length -= u64::from(was_listed);
        was_listed
    }

    pub(super) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.listed.iter().try_for_each(|&word| out.u64(word))
    }

    pub(super) fn load(&mut self, units: u32, input: &mut Reader) -> Result<(), StateError> {
        for word in &mut self.listed {
            *word = input.u64()?;
        }
        let over = if units.is_multiple_of(64) { 0 } else { self.listed.last().map_or(0, |word| word >> (units % 64)) };
        if over != 0 {
            return Err(input.damaged("a trimmed unit beyond the last one"));
        }
        self.length = self.listed.iter().map(|word| u64::from(word.count_ones())).sum();
        Ok(())
    }
}
