//! What a request's time went into: its latency, partitioned along its critical path.
//!
//! The parts of a request add up to its latency, to the picosecond. Which instant ends one part and begins the next is
//! told in docs/model/attribution.md.

use crate::sim::time::Time;

/// What a part of a request's time went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Part {
    /// Waiting for a place in the device's queue.
    HostQueue,
    /// The host link, waiting for it included.
    Link,
    /// The controller's software: waiting for a core, and running on it.
    Firmware,
    /// The controller's memory: waiting for it to have room, for a flush, and the time of an access to it.
    Buffer,
    /// Waiting for an earlier write of the same mapping unit.
    Order,
    /// Waiting for the entry of the map that tells the place.
    MapFetch,
    /// Waiting for other writes that fill the same program.
    Fill,
    /// Waiting for the die, which other host operations hold.
    Die,
    /// Waiting for the channel, which other host operations hold.
    Channel,
    /// Waiting for cleaning: for a free block, or for a die or channel that operations of cleaning hold.
    Gc,
    /// The read that completes a partial write: bus and cells.
    Rmw,
    /// Command and data cycles of its own operation, with the channel's turning to it.
    Bus,
    /// The cells of its own operation.
    Cell,
}

impl Part {
    /// How many there are.
    pub const COUNT: usize = 13;

    /// All parts, in the order in which a request meets them.
    pub const ALL: [Part; Part::COUNT] = [
        Part::HostQueue,
        Part::Link,
        Part::Firmware,
        Part::Buffer,
        Part::Order,
        Part::MapFetch,
        Part::Fill,
        Part::Die,
        Part::Channel,
        Part::Gc,
        Part::Rmw,
        Part::Bus,
        Part::Cell,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Part::HostQueue => "host_queue",
            Part::Link => "link",
            Part::Firmware => "firmware",
            Part::Buffer => "buffer",
            Part::Order => "order",
            Part::MapFetch => "map_fetch",
            Part::Fill => "fill",
            Part::Die => "die",
            Part::Channel => "channel",
            Part::Gc => "gc",
            Part::Rmw => "rmw",
            Part::Bus => "bus",
            Part::Cell => "cell",
        }
    }
}

/// The latency of one request, by [`Part`], and how widely it was spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Time, in the order of [`Part::ALL`].
    pub parts: [Time; Part::COUNT],
    /// How many channels its flash operations used (Yoo et al. 2013, Figure 11).
    pub channels: u32,
}

impl Breakdown {
    /// The time of one part.
    pub const fn of(&self, part: Part) -> Time {
        self.parts[part as usize]
    }

    /// All parts together: the latency.
    pub fn total(&self) -> Time {
        self.parts.iter().fold(Time::ZERO, |sum, part| sum + *part)
    }
}

/// Bands of latency to an octave.
const BANDS: usize = 16;

/// Requests of about the same latency: two cache lines, which each request finds.
#[derive(Clone, Copy, Debug, Default)]
struct Band {
    requests: u64,
    /// Sums of their latencies and parts, since they were last carried over. No part has a larger sum than the
    /// latencies, so that one test tells whether there is room for another request.
    latency: u64,
    parts: [u64; Part::COUNT],
}

/// Requests of about the same latency, and sums of any size.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: u64,
    parts: [u128; Part::COUNT],
}

/// The breakdowns of many requests, summed in narrow bands of latency: so one can tell what those at a percentile
/// waited for, and memory stays the same however many they are.
///
/// A band is at most 1/16 as wide as its latencies are long.
#[derive(Clone, Debug, Default)]
pub struct Bands {
    bands: Vec<Band>,
    /// By band, up to the last that has some: what was carried over, because 64 bits do not hold the sums.
    carried: Vec<Sums>,
}

/// The mean of some requests' breakdowns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanBreakdown {
    /// How many requests they are.
    pub requests: u64,
    /// Their parts in microseconds, in the order of [`Part::ALL`].
    pub parts_us: [f64; Part::COUNT],
}

/// The band of a latency: the longer the latency, the higher the band.
fn band(latency: Time) -> usize {
    let octave = latency.0.checked_ilog2().unwrap_or(0).saturating_sub(BANDS.ilog2()) as usize;
    // Up to the second octave a band is a picosecond.
    octave * BANDS + (latency.0 >> octave) as usize
}

impl Bands {
    /// Adds a request of that latency.
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

    /// All sums, by band.
    fn sums(&self) -> impl Iterator<Item = Sums> {
        self.bands.iter().enumerate().map(|(band, recent)| {
            let mut sums = recent.sums();
            self.carried.get(band).inspect(|carried| sums.add(carried));
            sums
        })
    }

    /// Adds all requests of another.
    pub fn add(&mut self, other: &Bands) {
        if self.bands.len() < other.bands.len() {
            self.grow(other.bands.len());
        }
        for (band, sums) in other.sums().enumerate().filter(|(_, sums)| sums.requests > 0) {
            self.carried_of(band).add(&sums);
        }
    }

    /// The mean of all; `None` without requests.
    pub fn mean(&self) -> Option<MeanBreakdown> {
        let mut all = Sums::default();
        self.sums().for_each(|band| all.add(&band));
        all.mean()
    }

    /// The mean of the band of the latency that a share of all (0 to 1) do not exceed; `None` without requests.
    pub fn at(&self, share: f64) -> Option<MeanBreakdown> {
        let all: u64 = self.sums().map(|band| band.requests).sum();
        // The rank as the percentiles of latencies have it.
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
    /// Adds a request, unless its sums have no room for it.
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
            // What the slow ones wait for is another part than what the others do.
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
