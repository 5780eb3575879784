//! Temperature classes of a device's units, with their counters.

use super::Temperature;
use crate::config::DeviceConfig;
use crate::external::{Externals, Fault};
use crate::ftl::temperature::written::{MAX_CLASSES, Written};
use crate::metrics::counters::ClassCounts;
use crate::sim::memory::zeroed_words;
use crate::state::{Reader, StateError, Writer};

/// Classifies units, and stores the class of each unit's last write in two bits.
#[derive(Clone, Debug)]
pub struct Classes {
    policy: Temperature,
    count: u32,
    /// Two bits for each unit.
    of: Vec<u64>,
    counts: [ClassCounts; MAX_CLASSES as usize],
}

impl Classes {
    /// Creates the classes of a device, or returns `None` if there is only one.
    pub fn new(device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<Option<Box<Classes>>, String> {
        let count = device.temperature.classes();
        if count < 2 {
            return Ok(None);
        }
        let policy = device.temperature.build(device, seed, externals).map_err(|e| format!("temperature: {e}"))?;
        let of = zeroed_words(device.logical_units().div_ceil(32) as usize);
        Ok(Some(Box::new(Classes { policy, count, of, counts: Default::default() })))
    }

    /// Classifies a unit that is written now. Returns its class.
    pub fn classify(&mut self, written: Written) -> u8 {
        let class = self.policy.classify(written);
        debug_assert!(u32::from(class) < self.count);
        let (word, bit) = ((written.lpn / 32) as usize, written.lpn % 32 * 2);
        self.of[word] = self.of[word] & !(3 << bit) | u64::from(class) << bit;
        self.counts[usize::from(class)].units_written += 1;
        class
    }

    /// Returns the class of a unit's last write. Units of the device itself, after those of the host, are of class 0.
    #[inline]
    pub fn of(&self, lpn: u32) -> u8 {
        self.of.get((lpn / 32) as usize).map_or(0, |word| (word >> (lpn % 32 * 2) & 3) as u8)
    }

    /// Counts a unit that garbage collection has moved.
    #[inline]
    pub fn note_moved(&mut self, lpn: u32) {
        self.counts[usize::from(self.of(lpn))].units_moved += 1;
    }

    /// Counts units of a class that go to a block of another class.
    pub fn note_elsewhere(&mut self, class: u8, units: u32) {
        self.counts[usize::from(class)].units_elsewhere += u64::from(units);
    }

    /// Returns the counters of each class.
    pub fn counts(&self) -> &[ClassCounts] {
        &self.counts[..self.count as usize]
    }

    /// Returns the fault of a policy that came with another program.
    pub fn fault(&self) -> Option<&Fault> {
        self.policy.fault()
    }

    pub(in crate::ftl) fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.of.iter().try_for_each(|word| out.u64(*word))?;
        for counts in self.counts() {
            out.u64(counts.units_written)?;
            out.u64(counts.units_moved)?;
            out.u64(counts.units_elsewhere)?;
        }
        self.policy.save(out)
    }

    pub(in crate::ftl) fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        for index in 0..self.of.len() {
            let word = input.u64()?;
            if (0..32).any(|unit| (word >> (unit * 2) & 3) as u32 >= self.count) {
                return Err(input.damaged("a unit of a class that does not exist"));
            }
            self.of[index] = word;
        }
        for counts in &mut self.counts[..self.count as usize] {
            counts.units_written = input.count("units written")?;
            counts.units_moved = input.count("units moved")?;
            counts.units_elsewhere = input.count("units elsewhere")?;
        }
        self.policy.load(input)
    }
}
