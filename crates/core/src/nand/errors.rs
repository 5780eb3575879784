//! Errors of read data: the raw bit error rate of a page, the chance that the code corrects it, and the reads that are
//! being decoded. See docs/model/errors.md.

use std::collections::VecDeque;

use crate::config::DeviceConfig;
use crate::config::errors::{Ecc, ErrorRate, Retry};
use crate::sim::id::{BlockId, TransactionId};
use crate::sim::time::Time;
use crate::state::{Reader, StateError, Writer};

/// Boltzmann constant in eV per kelvin.
const BOLTZMANN: f64 = 8.617_333e-5;
/// Temperature in degrees Celsius for which the rate of retention errors is given.
const REFERENCE: f64 = 30.0;
/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// Formulas of errors and their correction.
#[derive(Clone, Debug)]
pub struct ErrorModel {
    rate: ErrorRate,
    ecc: Ecc,
    retry: Retry,
    cycles: u32,
    /// Days at 30 degrees Celsius for which data are in flash when the run starts.
    age: f64,
    /// Time at 30 degrees Celsius that ages data as the run does, in relation to its time.
    acceleration: f64,
}

impl ErrorModel {
    /// Creates the formulas of a device. Returns `None` if the device has no table `errors`.
    pub fn new(device: &DeviceConfig) -> Option<ErrorModel> {
        let errors = device.errors.as_ref()?;
        let acceleration = |celsius: f64| {
            let inverse = |celsius: f64| 1.0 / (celsius + 273.15);
            libm::exp(errors.rate.activation_energy / BOLTZMANN * (inverse(REFERENCE) - inverse(celsius)))
        };
        let (days, celsius) = errors.age.days();
        Some(ErrorModel {
            rate: errors.rate.clone(),
            ecc: errors.ecc.clone(),
            retry: errors.retry.clone(),
            cycles: errors.cycles,
            age: days * acceleration(celsius.unwrap_or(errors.temperature)),
            acceleration: acceleration(errors.temperature),
        })
    }

    /// Returns the raw bit error rate after `erases` counted erases of the block, `days` days at 30 degrees Celsius
    /// since the program, and `reads` reads of the block for each of its pages.
    pub fn raw(&self, erases: u32, days: f64, reads: f64) -> f64 {
        let rate = &self.rate;
        let cycles = f64::from(self.cycles.saturating_add(erases).max(1));
        let wear = rate.wear * libm::pow(cycles, rate.wear_exponent);
        let retention = rate.retention * libm::pow(cycles, rate.retention_wear) * libm::pow(days, rate.retention_time);
        let disturb = rate.disturb * libm::pow(cycles, rate.disturb_wear) * libm::pow(reads, rate.disturb_reads);
        (rate.base + wear + retention + disturb).min(0.5)
    }

    /// Returns the days at 30 degrees Celsius that age data like `seconds` seconds of the run, after the age at its
    /// start if the data are from before the run.
    fn days(&self, seconds: f64, is_old: bool) -> f64 {
        seconds / DAY * self.acceleration + if is_old { self.age } else { 0.0 }
    }

    /// Returns the probability that all of `codewords` codewords are corrected at a bit error rate. The number of
    /// wrong bits of a codeword is binomial; a normal distribution with the same mean and variance approximates it.
    pub fn corrects(&self, rate: f64, codewords: u32) -> f64 {
        let mean = 8.0 * self.ecc.codeword.0 as f64 * rate;
        let deviation = (mean * (1.0 - rate)).sqrt();
        if deviation == 0.0 {
            return 1.0;
        }
        let excess = (f64::from(self.ecc.corrects) + 0.5 - mean) / deviation;
        let fails = 0.5 * libm::erfc(excess * std::f64::consts::FRAC_1_SQRT_2);
        libm::exp(f64::from(codewords) * libm::log1p(-fails))
    }

    /// Returns the bit error rate of the read after `retries` retries.
    fn after(&self, raw: f64, retries: u32) -> f64 {
        raw * libm::pow(self.retry.factor, f64::from(retries))
    }

    /// Returns the expected number of retries of a read of `codewords` codewords.
    pub fn expected_retries(&self, raw: f64, codewords: u32) -> f64 {
        (0..self.retry.steps).map(|retries| 1.0 - self.corrects(self.after(raw, retries), codewords)).sum()
    }
}

/// Result of decoding a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// All wrong bits were corrected.
    Corrected,
    /// The page has to be read again.
    Again,
    /// The last retry had too many wrong bits.
    Uncorrectable,
}

/// History of a block that affects its errors.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// Time of the last program since the start of the run, in picoseconds. If the block was programmed before, 0 or
    /// negative.
    programmed: i128,
    /// Page reads since the last erase.
    reads: u32,
}

/// Errors of a device: the history of each block, and the reads that are being decoded.
#[derive(Clone, Debug)]
pub struct ReadErrors {
    model: ErrorModel,
    blocks: Vec<History>,
    /// Reads that are being decoded, with the times of their ends. All take the same time, so the first one ends first.
    decoding: VecDeque<(Time, TransactionId)>,
    pages: u32,
    seed: u64,
}

/// Position of a page that was read, for [`ReadErrors::decoded`].
#[derive(Clone, Copy, Debug)]
pub struct PageRead {
    /// Block.
    pub block: BlockId,
    /// Number of the page in the device.
    pub page: u32,
    /// Counted erases of the block.
    pub erases: u32,
    /// Bytes that were read.
    pub bytes: u64,
    /// Number of retries so far.
    pub retries: u32,
}

impl ReadErrors {
    /// Creates the errors of a device. Returns `None` if the device has no table `errors`.
    pub fn new(device: &DeviceConfig, seed: u64) -> Option<ReadErrors> {
        Some(ReadErrors {
            model: ErrorModel::new(device)?,
            blocks: vec![History::default(); device.total_blocks() as usize],
            decoding: VecDeque::with_capacity(device.physical_planes() as usize),
            pages: device.pages_per_block(),
            seed,
        })
    }

    /// Notes the read of pages of a block.
    pub fn note_read(&mut self, block: BlockId, pages: u32) {
        let reads = &mut self.blocks[block.index()].reads;
        *reads = reads.saturating_add(pages);
    }

    /// Notes the end of a program in a block.
    pub fn note_program(&mut self, block: BlockId, now: Time) {
        self.blocks[block.index()].programmed = now.ps().into();
    }

    /// Notes the erase of a block.
    pub fn note_erase(&mut self, block: BlockId) {
        self.blocks[block.index()].reads = 0;
    }

    /// Starts to decode the data of a read. Returns the end if no other read is being decoded.
    pub fn start(&mut self, id: TransactionId, now: Time) -> Option<Time> {
        let end = now + self.model.ecc.decode.time();
        self.decoding.push_back((end, id));
        (self.decoding.len() == 1).then_some(end)
    }

    /// Returns the read whose data are decoded now, and the end of the next one.
    pub fn end(&mut self) -> Option<(TransactionId, Option<Time>)> {
        let (_, id) = self.decoding.pop_front()?;
        Some((id, self.decoding.front().map(|(end, _)| *end)))
    }

    /// Returns the result of decoding a page.
    pub fn decoded(&self, read: PageRead, now: Time) -> Decoded {
        let History { programmed, reads } = self.blocks[read.block.index()];
        let days = self.model.days((i128::from(now.ps()) - programmed) as f64 / 1e12, programmed <= 0);
        let raw = self.model.raw(read.erases, days, f64::from(reads) / f64::from(self.pages));
        if self.is_corrected(read, raw) {
            Decoded::Corrected
        } else if read.retries < self.model.retry.steps {
            Decoded::Again
        } else {
            Decoded::Uncorrectable
        }
    }

    /// Returns `true` if the last attempt of a read is corrected at the raw bit error rate `raw`.
    fn is_corrected(&self, read: PageRead, raw: f64) -> bool {
        let codewords = read.bytes.div_ceil(self.model.ecc.codeword.0) as u32;
        self.luck(read) < self.model.corrects(self.model.after(raw, read.retries), codewords)
    }

    /// Returns `true` if the page of a read would need fewer than `retries` retries if it had just been programmed.
    pub fn is_renewable(&self, read: PageRead, retries: u32) -> bool {
        let fresh = self.model.raw(read.erases, 0.0, 0.0);
        self.is_corrected(PageRead { retries: retries - 1, ..read }, fresh)
    }

    /// Returns a uniform number from 0 to below 1 for the contents of a page between two erases. It does not depend on
    /// the order of reads, and the same page needs as many retries at its next read, because its cells are the same.
    /// (The mixing function of splitmix64: Steele, Lea and Flood, OOPSLA 2014.)
    fn luck(&self, read: PageRead) -> f64 {
        let mut bits = self.seed ^ (u64::from(read.page) << 32 | u64::from(read.erases));
        for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0x9e37_79b9_7f4a_7c15] {
            bits = (bits ^ (bits >> 30)).wrapping_mul(factor);
            bits ^= bits >> 27;
        }
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Copies the history of the blocks of another device at `now`, for a device whose time starts at 0.
    pub fn copy_state(&mut self, other: &ReadErrors, now: Time) {
        self.blocks.clone_from(&other.blocks);
        self.blocks.iter_mut().for_each(|block| block.programmed -= i128::from(now.ps()));
    }

    /// Writes the history of the blocks: the time since their last programs, and their reads.
    pub fn save(&self, now: Time, out: &mut Writer) -> Result<(), StateError> {
        self.blocks.iter().try_for_each(|block| {
            let age = i128::from(now.ps()) - block.programmed;
            out.u64(age.try_into().unwrap_or(u64::MAX))?;
            out.u32(block.reads)
        })
    }

    /// Reads what [`ReadErrors::save`] wrote.
    pub fn load(&mut self, input: &mut Reader) -> Result<(), StateError> {
        for block in &mut self.blocks {
            *block = History { programmed: -i128::from(input.u64()?), reads: input.u32()? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(errors: &str) -> ErrorModel {
        let overrides = ["faults={}".to_owned(), format!("errors={errors}")];
        ErrorModel::new(&crate::config::load("tiny", &overrides).unwrap()).unwrap()
    }

    /// Park et al. (ASPLOS 2021) take 13 hours at 85 degrees for a year at 30 degrees.
    #[test]
    fn time_at_other_temperatures_counts_more_or_less() {
        let days = |age: &str| model(&format!("{{ age = \"{age}\", temperature = 55.0 }}")).age;
        assert_eq!(days("1 year at 30C"), 365.0);
        assert!((days("13 h at 85C") / 365.0 - 1.0).abs() < 0.05, "{}", days("13 h at 85C"));
        assert_eq!(days("10 days"), days("10 days at 55C"));
        assert!(days("10 days at 20C") < 10.0);
        let model = model("{ age = \"2 days at 30C\", temperature = 30.0 }");
        assert_eq!([true, false].map(|is_old| model.days(86_400.0, is_old)), [3.0, 1.0]);
    }

    #[test]
    fn the_normal_approximation_is_near_the_binomial_distribution() {
        let model = model("{}");
        for rate in [0.006f64, 0.0075, 0.0088, 0.01] {
            // The probabilities of 0 to 72 wrong bits.
            let mut term = libm::exp(8192.0 * libm::log1p(-rate));
            let mut exact = 0.0;
            for wrong in 0..=72 {
                exact += term;
                term *= f64::from(8192 - wrong) / f64::from(wrong + 1) * rate / (1.0 - rate);
            }
            assert!((model.corrects(rate, 1) - exact).abs() < 0.01, "{rate}: {} {exact}", model.corrects(rate, 1));
        }
        assert_eq!(model.corrects(0.0, 16), 1.0);
        assert_eq!(model.corrects(0.5, 16), 0.0);
    }
}
