//! Multi-hash classifier: counts writes in several small counters for each unit, found by hashing.

use super::TemperaturePolicy;
use crate::config::DeviceConfig;
use crate::ftl::temperature::written::Written;
use crate::policy::Policy;
use crate::sim::memory::zeroed_words;
use crate::state::{Reader, StateError, Writer};

/// Options of the multi-hash classifier.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MultiHashConfig {
    /// Number of counters of half a byte for each unit of the host; the total is rounded up to a power of two.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 16.0))]
    pub counters: f64,
    /// Number of counters of a unit, and of hash functions.
    #[schemars(range(min = 1, max = FACTORS.len()))]
    pub hashes: u32,
    /// Value that all counters of a unit have to reach for it to be hot.
    #[schemars(range(min = 1, max = MAX_COUNT))]
    pub hot: u32,
    /// Number of writes for each unit of the host after which all counters are halved.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1000.0))]
    pub halve_after: f64,
}

impl Default for MultiHashConfig {
    /// Four bits, two hash functions, and hot from 4 on (the value of the upper two bits), as in the paper. The number
    /// of counters and the time between halvings are assumed. They distinguish units that are written four times as
    /// often as the mean.
    fn default() -> Self {
        MultiHashConfig { counters: 2.0, hashes: 2, hot: 4, halve_after: 1.0 }
    }
}

/// A write increments all counters of its unit, up to 15. A unit is hot when the smallest of them reaches a threshold,
/// so that one counter that other units share does not make it hot. All counters are halved periodically (Hsieh, Kuo
/// and Chang, "Efficient identification of hot data for flash memory storage systems", ACM Transactions on Storage
/// 2(1), 2006).
///
/// A write takes one step for each hash function. Halving takes a sixteenth of a step for each counter. The default
/// options take one byte for each unit of the host.
#[derive(Clone, Debug)]
pub struct MultiHash {
    /// Words of sixteen counters.
    words: Vec<u64>,
    /// Number of the low bits of a hash that do not select a counter.
    shift: u32,
    hashes: usize,
    hot: u64,
    /// Number of writes between two halvings.
    period: u64,
    /// Number of writes since the last halving.
    since: u64,
}

/// Odd numbers without a pattern in their bits, one for each hash function: the first fractional digits of the square
/// roots of the first primes (the initial values of SHA-512), made odd.
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

/// Maximum value of a counter.
const MAX_COUNT: u64 = 15;

impl Policy for MultiHash {
    type Config = MultiHashConfig;

    fn new(options: &MultiHashConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        let of_units = |share: f64| ((device.logical_units() as f64 * share) as u64).max(1);
        Ok(MultiHash::of(of_units(options.counters), options.hashes, options.hot, of_units(options.halve_after)))
    }
}

impl MultiHash {
    fn of(counters: u64, hashes: u32, hot: u32, period: u64) -> MultiHash {
        // There are at least sixteen, which is one word.
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

    /// Increments a counter. Returns its value.
    #[inline]
    fn count(&mut self, counter: u64) -> u64 {
        let (word, bit) = ((counter / 16) as usize, counter % 16 * 4);
        let value = self.words[word] >> bit & MAX_COUNT;
        if value < MAX_COUNT {
            self.words[word] += 1 << bit;
        }
        (value + 1).min(MAX_COUNT)
    }

    fn halve(&mut self) {
        self.words.iter_mut().for_each(|word| *word = *word >> 1 & 0x7777_7777_7777_7777);
    }
}

impl TemperaturePolicy for MultiHash {
    fn classify(&mut self, written: Written) -> u8 {
        let mut least = MAX_COUNT;
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
        if self.since < self.period {
            Ok(())
        } else {
            Err(input.damaged(format!("{} writes since counters were halved", self.since)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_hot_while_it_is_written_often() {
        // A thousand counters, halved after ten writes, hot from 4 on. One unit is written again and again.
        let mut counters = MultiHash::of(1000, 2, 4, 10);
        let mut write = |lpn| counters.classify(Written { lpn, ..Written::default() });
        assert_eq!([7; 5].map(&mut write), [0, 0, 0, 1, 1]);
        // Four other units and unit 7: at this tenth write, its count of 6 is halved to 3. The next write makes it 4
        // again.
        assert_eq!([1, 2, 3, 4, 7, 7].map(&mut write), [0, 0, 0, 0, 1, 1]);
        // After nine other units, its count is 2: it needs two more writes.
        assert_eq!([10, 11, 12, 13, 14, 15, 16, 17, 18].map(&mut write), [0; 9]);
        assert_eq!([7; 3].map(&mut write), [0, 1, 1]);
        // Counters stop at 15.
        assert_eq!((0..100).map(|_| counters.count(3)).max(), Some(15));
    }
}
