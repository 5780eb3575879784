//! Latency breakdown: partitions the latency of a request along its critical path.
//!
//! The parts of a request add up to its latency, to the picosecond. docs/model/attribution.md defines where each part
//! starts and ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sim::time::Time;

/// Declares the parts of a latency: an enum, and the part of a result with the mean of each.
macro_rules! parts {
    ($($(#[doc = $doc:literal])+ $(#[serde $serde:tt])? $part:ident: $us:ident,)+) => {
        /// Part of a latency, by cause.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Part {
            $($(#[doc = $doc])+ $part,)+
        }

        impl Part {
            /// All parts, in the order in which they occur in a request.
            pub const ALL: [Part; Part::COUNT] = [$(Part::$part),+];

            /// Number of parts.
            pub const COUNT: usize = [$(stringify!($us)),+].len();

            /// Returns the name in results, to which they add the unit.
            pub fn name(self) -> &'static str {
                [$(stringify!($us)),+][self as usize].trim_end_matches("_us")
            }
        }

        /// Mean latency breakdown of some requests, in microseconds.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct Parts {
            /// Requests that the means are over.
            pub requests: u64,
            /// Mean latency, which is the sum of all parts.
            pub latency_us: f64,
            $($(#[doc = $doc])+ $(#[serde $serde])? pub $us: f64,)+
        }

        impl Parts {
            pub(super) fn new(mean: MeanBreakdown) -> Parts {
                let [$($us),+] = mean.parts_us;
                Parts { requests: mean.requests, latency_us: mean.parts_us.iter().sum(), $($us),+ }
            }

            /// Returns the parts with their names, in microseconds.
            pub fn by_name(&self) -> [(&'static str, f64); Part::COUNT] {
                [$((Part::$part.name(), self.$us)),+]
            }
        }
    };
}

parts! {
    /// Wait for a slot in the device's queue (`host.queue_depth`).
    HostQueue: host_queue_us,
    /// Host link, including the wait for it.
    Link: link_us,
    /// Firmware of the controller: wait for a core, and execution.
    #[serde(default)]
    Firmware: firmware_us,
    /// Throttle of host writes: delay of the write, and of writes before it (`config.gc.throttle`,
    /// `config.buffer.credits`). Absent if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    Throttle: throttle_us,
    /// Memory of the controller: wait for room, also of earlier writes (`config.host.order`), wait of a flush, and
    /// access.
    Buffer: buffer_us,
    /// Wait for an earlier write of the same mapping unit.
    Order: order_us,
    /// Wait for the map entry with the physical address, if the map is in flash.
    MapFetch: map_fetch_us,
    /// Wait for other writes that fill the same program (`controller.fill_timeout`).
    Fill: fill_us,
    /// Wait for the die while other host operations hold it.
    Die: die_us,
    /// Wait for the channel while other host operations hold it.
    Channel: channel_us,
    /// Wait for garbage collection: for a free block, or for a die or channel that it holds.
    Gc: gc_us,
    /// Read that completes a partial write: bus and cells.
    Rmw: rmw_us,
    /// Command and data cycles of the request's own operation, including the switch of the channel to it.
    Bus: bus_us,
    /// Cell time of the request's own operation.
    Cell: cell_us,
    /// Error correction: decoding, and bus and cells of read retries (`config.errors`). Absent if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    Ecc: ecc_us,
    /// Rebuild of an uncorrectable page from its stripe (`config.superblock.parity`). Absent if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    Rebuild: rebuild_us,
}

fn is_zero(us: &f64) -> bool {
    *us == 0.0
}

/// Latency of one request by [`Part`], and the number of channels that it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Times, in the order of [`Part::ALL`].
    pub parts: [Time; Part::COUNT],
    /// Number of channels that its flash operations used (Yoo et al. 2013, Figure 11).
    pub channels: u32,
}

impl Breakdown {
    /// Returns the time of one part.
    pub const fn of(&self, part: Part) -> Time {
        self.parts[part as usize]
    }

    /// Returns the sum of all parts, which is the latency.
    pub fn total(&self) -> Time {
        self.parts.iter().fold(Time::ZERO, |sum, part| sum + *part)
    }
}

/// Number of latency bands per octave.
const BANDS: usize = 16;

/// Requests of about the same latency. A band takes 18 words, and each request updates one band.
#[derive(Clone, Copy, Debug, Default)]
struct Band {
    requests: u64,
    /// Sums of the latencies and of their parts since the sums were last carried over. No part has a larger sum than
    /// the latencies, so one test shows whether another request fits.
    latency: u64,
    parts: [u64; Part::COUNT],
}

/// Requests of about the same latency, with sums of any size.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: u64,
    parts: [u128; Part::COUNT],
}

/// Breakdowns of many requests, summed in narrow latency bands. They show what the requests at a percentile waited for,
/// in memory that does not grow with the number of requests.
///
/// A band is at most 1/16 as wide as its latencies are long.
#[derive(Clone, Debug, Default)]
pub struct Bands {
    bands: Vec<Band>,
    /// Sums that were carried over because 64 bits cannot hold them, indexed by band, up to the last band with any.
    carried: Vec<Sums>,
}

/// Mean breakdown of some requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanBreakdown {
    /// Number of these requests.
    pub requests: u64,
    /// Parts in microseconds, in the order of [`Part::ALL`].
    pub parts_us: [f64; Part::COUNT],
}

/// Returns the band of a latency. Longer latencies have higher bands.
fn band(latency: Time) -> usize {
    let octave = latency.0.checked_ilog2().unwrap_or(0).saturating_sub(BANDS.ilog2()) as usize;
    // Up to the second octave, a band is one picosecond wide.
    octave * BANDS + (latency.0 >> octave) as usize
}

impl Bands {
    /// Adds a request with this latency.
    #[inline]
    pub fn record(&mut self, latency: Time, breakdown: &Breakdown) {
        debug_assert_eq!(latency, breakdown.total(), "the parts of a latency add up to it");
        let band = band(latency);
        if band >= self.bands.len() {
            self.grow(band + 1);
        }
        if !self.bands[band].record(latency, breakdown) {
            self.carry(band);
            self.bands[band].record(latency, breakdown);
        }
    }

    #[cold]
    fn grow(&mut self, bands: usize) {
        self.bands.resize(bands, Band::default());
    }

    #[cold]
    fn carry(&mut self, band: usize) {
        let sums = std::mem::take(&mut self.bands[band]).sums();
        self.carried_of(band).add(&sums);
    }

    fn carried_of(&mut self, band: usize) -> &mut Sums {
        if self.carried.len() <= band {
            self.carried.resize(band + 1, Sums::default());
        }
        &mut self.carried[band]
    }

    /// Returns the sums of all bands.
    fn sums(&self) -> impl Iterator<Item = Sums> {
        self.bands.iter().enumerate().map(|(band, recent)| {
            let mut sums = recent.sums();
            self.carried.get(band).inspect(|carried| sums.add(carried));
            sums
        })
    }

    /// Adds all requests of another breakdown.
    pub fn add(&mut self, other: &Bands) {
        if self.bands.len() < other.bands.len() {
            self.grow(other.bands.len());
        }
        for (band, sums) in other.sums().enumerate().filter(|(_, sums)| sums.requests > 0) {
            self.carried_of(band).add(&sums);
        }
    }

    /// Returns the mean of all requests, or `None` without requests.
    pub fn mean(&self) -> Option<MeanBreakdown> {
        let mut all = Sums::default();
        self.sums().for_each(|band| all.add(&band));
        all.mean()
    }

    /// Returns the mean of the latency band that contains the quantile `share` (0 to 1), or `None` without requests.
    pub fn at(&self, share: f64) -> Option<MeanBreakdown> {
        let all: u64 = self.sums().map(|band| band.requests).sum();
        // The rank is defined as for the percentiles of latencies.
        let rank = (libm::ceil(share * all as f64) as u64).clamp(1, all.max(1));
        let mut below = 0;
        let band = self.sums().find(|band| {
            below += band.requests;
            below >= rank
        });
        band.and_then(|band| band.mean())
    }
}

impl Band {
    /// Adds a request. Returns `false` if the sums have no room for it.
    #[inline(always)]
    fn record(&mut self, latency: Time, breakdown: &Breakdown) -> bool {
        let Some(sum) = self.latency.checked_add(latency.0) else { return false };
        self.requests += 1;
        self.latency = sum;
        for (sum, part) in self.parts.iter_mut().zip(breakdown.parts) {
            *sum += part.0;
        }
        true
    }

    fn sums(&self) -> Sums {
        Sums { requests: self.requests, parts: self.parts.map(u128::from) }
    }
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.requests += other.requests;
        self.parts.iter_mut().zip(other.parts).for_each(|(sum, part)| *sum += part);
    }

    fn mean(&self) -> Option<MeanBreakdown> {
        let requests = self.requests;
        let us = |sum: u128| sum as f64 / requests as f64 / 1e6;
        (requests > 0).then(|| MeanBreakdown { requests, parts_us: self.parts.map(us) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_in_order_and_narrow() {
        let mut last = (0, 0);
        let latencies = (0..5000).chain((0..57).flat_map(|shift| [31 << shift, 32 << shift, (32 << shift) + 1]));
        let mut latencies: Vec<u64> = latencies.collect();
        latencies.sort_unstable();
        for ps in latencies {
            let at = band(Time(ps));
            assert!(at >= last.0, "{ps} ps lies in band {at}, below {}", last.0);
            if at == last.0 {
                assert!(ps - last.1 <= last.1 / BANDS as u64, "{} and {ps} ps share a band", last.1);
            } else {
                last = (at, ps);
            }
        }
        assert!(band(Time::NEVER) < 1100);
    }

    #[test]
    fn sums_beyond_64_bits_are_kept() {
        let mut bands = Bands::default();
        let (half, quarter) = (Time(1 << 63), Time(1 << 62));
        let mut breakdown = Breakdown::default();
        (breakdown.parts[Part::Die as usize], breakdown.parts[Part::Cell as usize]) = (quarter, quarter);
        (0..5).for_each(|_| bands.record(half, &breakdown));
        let mut sum = bands.clone();
        sum.add(&bands);
        for (bands, requests) in [(bands, 5), (sum, 10)] {
            let mean = bands.mean().unwrap();
            assert_eq!(mean.requests, requests);
            assert_eq!(mean.parts_us[Part::Die as usize], quarter.0 as f64 / 1e6);
            assert_eq!(mean.parts_us[Part::Cell as usize], quarter.0 as f64 / 1e6);
            assert_eq!(mean.parts_us.iter().sum::<f64>(), half.0 as f64 / 1e6);
        }
    }

    #[test]
    fn a_percentile_is_told_by_requests_of_its_latency() {
        let mut bands = Bands::default();
        for us in 1..=1000 {
            let mut breakdown = Breakdown::default();
            // Slow requests wait for another part than the others.
            breakdown.parts[if us > 900 { Part::Gc } else { Part::Cell } as usize] = Time::from_us(us);
            bands.record(Time::from_us(us), &breakdown);
        }
        assert_eq!(bands.mean().unwrap().requests, 1000);
        for (share, part) in [(0.5, Part::Cell), (0.99, Part::Gc), (0.999, Part::Gc)] {
            let at = bands.at(share).unwrap();
            let latency: f64 = at.parts_us.iter().sum();
            assert!((latency / (share * 1000.0) - 1.0).abs() <= 1.0 / BANDS as f64, "{share}: {latency}");
            assert!(at.parts_us[part as usize] > 0.9 * latency, "{share}: {at:?}");
        }
        assert_eq!(bands.at(1.0).map(|at| at.requests > 0), Some(true));
        assert_eq!(Bands::default().at(0.5), None);
    }
}
