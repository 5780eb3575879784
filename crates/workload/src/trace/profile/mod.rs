//! Profile of a trace: mix, sizes, arrivals, footprint, locality, order, and plausibility.
//!
//! The trace is read in one pass, one request at a time. Memory is independent of the number of requests. It grows with
//! the touched addresses up to a limit, beyond which they are sampled (`pages`).

mod bursts;
mod doubts;
mod gaps;
mod moments;
mod order;
mod pages;
mod report;
mod runs;

use std::collections::BTreeMap;

pub use moments::{class_ends, class_of, octave_of};
pub use report::*;

use super::detect::{Confidence, Detected};
use super::time_unit::TimeUnit;
use super::{Item, Reader};
use crate::sim::request::{Operation, SECTOR};
use bursts::Bursts;
use doubts::Doubts;
use gaps::GapMoments;
use order::Order as OrderOfTime;
use pages::{Pages, Touched, hot_share};
use runs::Runs;

/// A trace with more devices has other data in that column. The devices beyond the limit are counted as one.
const MAX_DEVICES: usize = super::record::MAX_DEVICES;

/// Counts of one operation.
#[derive(Default)]
struct OfOperation {
    sizes: moments::Sizes,
    kib: moments::Moments,
    sectors: u64,
    aligned: u64,
    whole: u64,
    /// Number of requests that continue no other, and how many of these start at a page.
    starts: u64,
    aligned_starts: u64,
}

/// Counts of one device.
struct OfDevice {
    requests: u64,
    reads: u64,
    sectors: u64,
    first: u64,
    end: u64,
}

/// Collects the profile of a trace, one request at a time.
pub struct Profiler {
    requests: u64,
    /// Time of the first request.
    first: Option<i128>,
    /// Earliest and latest time.
    ends: Option<(i128, i128)>,
    operations: [OfOperation; Operation::ALL.len()],
    devices: BTreeMap<u32, OfDevice>,
    others: Option<OfDevice>,
    gaps: GapMoments,
    bursts: Bursts,
    order: OrderOfTime,
    pages: Pages,
    runs: Runs,
    doubts: Doubts,
}

impl Default for Profiler {
    fn default() -> Profiler {
        Profiler::new(pages::MAX_REGIONS)
    }
}

impl Profiler {
    /// Creates a profiler that counts each page of up to `max_regions` regions of 256 KiB, and samples the regions if
    /// there are more. A region takes about 560 B.
    pub fn new(max_regions: usize) -> Profiler {
        Profiler {
            requests: 0,
            first: None,
            ends: None,
            operations: Default::default(),
            devices: BTreeMap::new(),
            others: None,
            gaps: GapMoments::default(),
            bursts: Bursts::default(),
            order: OrderOfTime::default(),
            pages: Pages::new(max_regions),
            runs: Runs::default(),
            doubts: Doubts::new(),
        }
    }

    /// Adds a request.
    pub fn add(&mut self, item: &Item) {
        self.requests += 1;
        let Item { device, operation, lba, sectors, ps, .. } = *item;
        let (earliest, latest) = self.ends.unwrap_or((ps, ps));
        if ps >= latest {
            if self.requests > 1 {
                self.gaps.add(u64::try_from(ps - latest).unwrap_or(u64::MAX));
            }
            self.bursts.add((ps - *self.first.get_or_insert(ps)).unsigned_abs());
        }
        self.ends = Some((earliest.min(ps), latest.max(ps)));
        self.doubts.add(item, (latest.max(ps) - earliest.min(ps)).unsigned_abs());
        self.order.add(ps);
        self.pages.touch(device, operation, lba, sectors);
        let continues = self.runs.add(device, operation, lba, sectors);
        self.operations[operation.index()].add(lba, sectors, continues);
        self.add_to_device(item);
    }

    fn add_to_device(&mut self, item: &Item) {
        let fresh = || OfDevice { requests: 0, reads: 0, sectors: 0, first: u64::MAX, end: 0 };
        let known = self.devices.len() < MAX_DEVICES || self.devices.contains_key(&item.device);
        let device = if known {
            self.devices.entry(item.device).or_insert_with(fresh)
        } else {
            self.others.get_or_insert_with(fresh)
        };
        device.requests += 1;
        device.reads += u64::from(item.operation == Operation::Read);
        device.sectors += u64::from(item.sectors);
        if item.sectors > 0 {
            device.first = device.first.min(item.lba);
            device.end = device.end.max(item.lba + u64::from(item.sectors));
        }
    }

    /// Returns the profile of a trace from a reader, with warnings about the trace. `file` is the name of the trace.
    pub fn finish_trace(self, reader: &Reader, file: &str) -> Profile {
        let unit = reader.unit();
        let name = |device: u32| reader.device(device);
        let (mut profile, doubts) = self.profile(&name);
        let detected = reader.detected().in_doubt(doubts.rate(unit).is_some());
        profile.trace = Some(origin(file, &detected, unit));
        profile.warnings = reader.warnings();
        let own = doubts.warnings(&profile, detected.format, unit);
        profile.warnings.extend(own.into_iter().map(|warning| format!("{file}: {warning}")));
        profile
    }

    /// Returns the profile of generated requests.
    pub fn finish(self) -> Profile {
        self.profile(&|device: u32| device.to_string()).0
    }

    fn profile(self, name: &dyn Fn(u32) -> String) -> (Profile, Doubts) {
        let touched = self.pages.finish();
        let runs = self.runs.finish();
        let bytes = self.operations.iter().map(|one| one.sectors).sum::<u64>().saturating_mul(SECTOR);
        let duration_s = self.ends.map_or(0.0, |(earliest, latest)| (latest - earliest) as f64 / 1e12);
        let timed = duration_s > 0.0 && self.requests > 1;
        let shares = self.runs.shares();
        let operations = Operation::ALL.iter().zip(&self.operations).zip(&runs);
        let profile = Profile {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            trace: None,
            warnings: Vec::new(),
            requests: self.requests,
            bytes,
            duration_s,
            rate: timed.then(|| (self.requests - 1) as f64 / duration_s),
            mib_per_s: timed.then(|| bytes as f64 / duration_s / f64::from(1 << 20)),
            operations: operations
                .filter(|((_, one), _)| one.kib.count() > 0)
                .map(|((operation, one), runs)| one.profile(*operation, runs, self.requests, &touched))
                .collect(),
            arrivals: self.gaps.finish(&self.bursts, self.doubts.resolution_ps()),
            footprint: footprint(&touched, span(self.devices.values().chain(&self.others))),
            sequentiality: Sequentiality {
                after_last: shares.map(|(last, _)| last),
                after_stream: shares.map(|(_, stream)| stream),
            },
            devices: devices(self.devices, self.others, &touched, name),
            order: Order { late: self.order.late(), sort_window: self.order.window(), beyond: self.order.is_beyond() },
        };
        (profile, self.doubts)
    }
}

impl OfOperation {
    fn add(&mut self, lba: u64, sectors: u32, continues: bool) {
        let aligned = lba.is_multiple_of(pages::PAGE);
        self.sizes.add(sectors);
        self.kib.add(f64::from(sectors) / 2.0);
        self.sectors += u64::from(sectors);
        self.aligned += u64::from(aligned);
        self.whole += u64::from(aligned && u64::from(sectors).is_multiple_of(pages::PAGE));
        self.starts += u64::from(!continues);
        self.aligned_starts += u64::from(!continues && aligned);
    }

    fn profile(&self, operation: Operation, runs: &runs::Sequential, all: u64, touched: &Touched) -> OperationProfile {
        let requests = self.kib.count();
        let share = |count: u64| count as f64 / requests as f64;
        let counts = match operation {
            Operation::Read => Some(&touched.counts[0]),
            Operation::Write => Some(&touched.counts[1]),
            _ => None,
        };
        OperationProfile {
            operation: operation.name().to_owned(),
            requests,
            share: requests as f64 / all as f64,
            bytes: self.sectors.saturating_mul(SECTOR),
            size_kib: report::said(&self.kib),
            sizes: self.sizes.counts().map(|(sectors, requests)| SizeCount { sectors, requests }).collect(),
            sequential: share(runs.requests),
            run_mean: runs.runs.mean(),
            run_longest: runs.runs.ends().map_or(0, |(_, longest)| longest as u64),
            aligned: share(self.aligned),
            aligned_starts: (self.starts > 0).then(|| self.aligned_starts as f64 / self.starts as f64),
            whole_pages: share(self.whole),
            hot: counts.and_then(|counts| hot_shares(counts)),
        }
    }
}

fn hot_shares(counts: &[(u64, u64)]) -> Option<HotShares> {
    Some(HotShares {
        of_1_percent: hot_share(counts, 0.01)?,
        of_5_percent: hot_share(counts, 0.05)?,
        of_10_percent: hot_share(counts, 0.1)?,
        of_20_percent: hot_share(counts, 0.2)?,
    })
}

/// Returns the largest span of a device, in bytes.
fn span<'a>(devices: impl Iterator<Item = &'a OfDevice>) -> u64 {
    devices.map(|device| device.end.saturating_sub(device.first)).max().unwrap_or(0).saturating_mul(SECTOR)
}

fn footprint(touched: &Touched, span_bytes: u64) -> Footprint {
    let accesses = touched.accesses;
    let share = |count: u64, of: u64| (of > 0).then(|| count as f64 / of as f64);
    // Accesses are counted only in the sample.
    let seen = touched.either * touched.sampled;
    Footprint {
        pages: touched.either,
        read_pages: touched.read,
        written_pages: touched.written,
        both_pages: touched.both,
        sampled: touched.sampled,
        relative_error: touched.error,
        span_bytes,
        accesses_per_page: (seen > 0.0).then(|| total(&touched.counts[2]) / seen),
        hot: hot_shares(&touched.counts[2]),
        overwrites: share(accesses.overwrites, accesses.writes),
        updates: share(accesses.updates, accesses.writes),
        reads_of_unwritten: share(accesses.unwritten, accesses.reads),
    }
}

fn total(counts: &[(u64, u64)]) -> f64 {
    counts.iter().map(|(accesses, pages)| *accesses as f64 * *pages as f64).sum()
}

fn devices(
    known: BTreeMap<u32, OfDevice>,
    others: Option<OfDevice>,
    touched: &Touched,
    name: &dyn Fn(u32) -> String,
) -> Vec<DeviceProfile> {
    let profile = |name: String, device: &OfDevice, pages: f64| DeviceProfile {
        name,
        requests: device.requests,
        reads: device.reads as f64 / device.requests as f64,
        bytes: device.sectors.saturating_mul(SECTOR),
        pages,
        first_sector: device.first.min(device.end),
        end_sector: device.end,
    };
    let pages = |device: u32| touched.by_device.get(&device).copied().unwrap_or(0.0);
    let mut devices: Vec<DeviceProfile> =
        known.iter().map(|(device, one)| profile(name(*device), one, pages(*device))).collect();
    devices.sort_by_cached_key(|device| (device.name.parse::<u64>().unwrap_or(u64::MAX), device.name.clone()));
    if let Some(others) = others {
        let rest = touched.by_device.iter().filter(|(device, _)| !known.contains_key(device));
        devices.push(profile("others".to_owned(), &others, rest.map(|(_, pages)| pages).sum()));
    }
    devices
}

fn origin(file: &str, detected: &Detected, unit: TimeUnit) -> Origin {
    let confidence = match detected.confidence {
        Confidence::Given => "given",
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Ambiguous => "ambiguous",
        Confidence::Doubtful => "doubtful",
    };
    Origin {
        file: file.to_owned(),
        format: detected.format.name.to_owned(),
        confidence: confidence.to_owned(),
        alternatives: detected.alternatives.iter().map(|format| format.name.to_owned()).collect(),
        time_unit: unit.to_string(),
    }
}

#[cfg(test)]
mod tests;
