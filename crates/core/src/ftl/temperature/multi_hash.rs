//! Counting writes in few bits: several small counters for each unit, by hashing.

use super::TemperaturePolicy;
use crate::config::DeviceConfig;
use crate::ftl::temperature::written::Written;
use crate::policy::Policy;
use crate::sim::memory::zeroed_words;
use crate::state::{Reader, StateError, Writer};

/// Options of the counters.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MultiHashConfig {
    /// Counters for each unit of the host, of half a byte each; rounded up to a power of two of them in all.
    #[schemars(range(min = 0.0, max = 16.0))]
    pub counters: f64,
    /// Counters that a unit has, by as many hash functions.
    #[schemars(range(min = 1, max = 8))]
    pub hashes: u32,
    /// A unit is hot when all its counters have come to so much.
    #[schemars(range(min = 1, max = 15))]
    pub hot: u32,
    /// Counters are halved after so many writes for each unit of the host.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub halve_after: f64,
}

impl Default for MultiHashConfig {
    /// Four bits, two hash functions, and hot from 4 on, the value of the higher two bits, as in the paper. The number
    /// of counters and the time between halvings are assumed: they tell apart what is written four times as often as
    /// the mean, with half as many counts of others.
    fn default() -> Self {
        MultiHashConfig { counters: 2.0, hashes: 2, hot: 4, halve_after: 1.0 }
    }
}

/// A write counts in all counters of its unit, up to 15; a unit is hot when the least of them has come to a threshold,
/// so that one counter that others share does not make it so. All are halved now and then (Hsieh, Kuo and Chang,
/// "Efficient identification of hot data for flash memory storage systems", ACM Transactions on Storage 2(1), 2006).
///
/// A step for each hash function and write, and a sixteenth for each counter and halving. A byte for each unit of the
/// host with the default options.
#[derive(Clone, Debug)]
pub struct MultiHash {
    /// Sixteen counters in each.
    words: Vec<u64>,
    /// Of a hash, the bits that do not tell counters apart.
    shift: u32,
    hashes: usize,
    hot: u64,
    /// Writes between two halvings.
    period: u64,
    /// Writes since the last one.
    since: u64,
}

/// Odd numbers without a pattern in their bits, one for each hash function: the first digits of the square roots of
/// the first primes behind the point (those with which SHA-512 begins), made odd.
const FACTORS: [u64; 8] = [
    0x6a09_e667_f3bc_c909,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// The most that a counter counts to.
const MOST: u64 = 15;

impl Policy for MultiHash {
    type Config = MultiHashConfig;

    fn check(options: &MultiHashConfig, _: &DeviceConfig) -> Result<(), String> {
        let MultiHashConfig { counters, hashes, hot, halve_after } = *options;
        if !(counters > 0.0 && counters <= 16.0) {
            return Err(format!("counters = {counters}: must be above 0 and at most 16 for each unit"));
        }
        if !(1..=FACTORS.len() as u32).contains(&hashes) {
            return Err(format!("hashes = {hashes}: must be from 1 to {}", FACTORS.len()));
        }
        if !(1..=MOST as u32).contains(&hot) {
            return Err(format!("hot = {hot}: must be from 1 to {MOST}, the most that a counter counts to"));
        }
        match halve_after > 0.0 && halve_after <= 1000.0 {
            true => Ok(()),
            false => Err(format!("halve_after = {halve_after}: must be above 0 and at most 1000 writes for each unit")),
        }
    }

    fn new(options: &MultiHashConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Self::check(options, device)?;
        let of_units = |share: f64| ((device.logical_units() as f64 * share) as u64).max(1);
        Ok(MultiHash::of(of_units(options.counters), options.hashes, options.hot, of_units(options.halve_after)))
    }
}

impl MultiHash {
    fn of(counters: u64, hashes: u32, hot: u32, period: u64) -> MultiHash {
        // Sixteen at least: they are in words.
        let counters = counters.next_power_of_two().max(16);
        MultiHash {
            words: zeroed_words((counters / 16) as usize),
            shift: 64 - counters.trailing_zeros(),
            hashes: hashes as usize,
            hot: u64::from(hot),
            period,
            since: 0,
        }
    }

    /// Counts one more in a counter; what it has come to.
    #[inline]
    fn count(&mut self, counter: u64) -> u64 {
        let (word, bit) = ((counter / 16) as usize, counter % 16 * 4);
        let value = self.words[word] >> bit & MOST;
        if value < MOST {
            self.words[word] += 1 << bit;
        }
        (value + 1).min(MOST)
    }

    fn halve(&mut self) {
        self.words.iter_mut().for_each(|word| *word = *word >> 1 & 0x7777_7777_7777_7777);
    }
}

impl TemperaturePolicy for MultiHash {
    fn classify(&mut self, written: Written) -> u8 {
        let mut least = MOST;
        for factor in &FACTORS[..self.hashes] {
            let hash = (u64::from(written.lpn) + 1).wrapping_mul(*factor);
            least = least.min(self.count(hash >> self.shift));
        }
        self.since += 1;
        if self.since == self.period {
            self.since = 0;
            self.halve();
        }
        u8::from(least >= self.hot)
    }

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.words.iter().try_for_each(|word| out.u64(*word))?;
        out.u64(self.since)
    }

    fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        for word in &mut self.words {
            *word = input.u64()?;
        }
        self.since = input.u64()?;
        match self.since < self.period {
            true => Ok(()),
            false => Err(input.damaged(format!("{} writes since counters were halved", self.since))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_often_is_hot_until_it_is_not() {
        // A thousand counters for one unit that is written again and again, halved after ten writes, hot from 4 on.
        let mut counters = MultiHash::of(1000, 2, 4, 10);
        let mut write = |lpn| counters.classify(Written { lpn, ..Written::default() });
        assert_eq!([7; 5].map(&mut write), [0, 0, 0, 1, 1]);
        // Four others, and it once more: the tenth write, after which its 6 are 3. The next one makes them 4 again.
        assert_eq!([1, 2, 3, 4, 7, 7].map(&mut write), [0, 0, 0, 0, 1, 1]);
        // Nine others, then it is 2: two writes more are needed.
        assert_eq!([10, 11, 12, 13, 14, 15, 16, 17, 18].map(&mut write), [0; 9]);
        assert_eq!([7; 3].map(&mut write), [0, 1, 1]);
        // Counters stop at 15.
        assert_eq!((0..100).map(|_| counters.count(3)).max(), Some(15));
    }
}
