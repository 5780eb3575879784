//! Accesses to 4 KiB pages: footprint, hot shares, overwrites.
//!
//! Pages are counted in regions of 64 pages. If there would be too many regions, only a sample is counted: the regions
//! whose hash is below a limit, which is halved whenever there are too many regions. This samples addresses and not
//! requests, so the counts in each sampled region are exact. C. A. Waldspurger et al., "Efficient MRC construction with
//! SHARDS", FAST 2015, sample single blocks in the same way.

use std::collections::BTreeMap;

use crate::sim::request::Operation;

/// Sectors per page.
pub const PAGE: u64 = 8;
/// Pages per region.
const REGION: u64 = 64;
/// Maximum number of regions, at about 560 B each: 128 GiB of densely used addresses.
pub const MAX_REGIONS: usize = 1 << 19;

/// Accesses to the pages of a region. The counts saturate.
struct Region {
    reads: [u32; REGION as usize],
    writes: [u32; REGION as usize],
}

/// Accesses to pages. Each page of a request is one access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Reads.
    pub reads: u64,
    /// Reads of pages that were not written before.
    pub unwritten: u64,
    /// Writes.
    pub writes: u64,
    /// Writes to pages that were written before.
    pub overwrites: u64,
    /// Writes to pages that were read or written before.
    pub updates: u64,
}

/// Pages of all devices.
pub struct Pages {
    regions: BTreeMap<(u32, u64), Box<Region>>,
    max_regions: usize,
    /// A region is counted if its hash starts with this number of zero bits: one region of 2^halvings.
    halvings: u32,
    accesses: Accesses,
}

/// Page statistics. Numbers of pages are estimates if `sampled` is below 1.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// Share of the regions that were counted.
    pub sampled: f64,
    /// Relative standard error of the number of pages.
    pub error: f64,
    /// Pages read.
    pub read: f64,
    /// Pages written.
    pub written: f64,
    /// Pages both read and written.
    pub both: f64,
    /// Pages read or written.
    pub either: f64,
    /// Pages by device.
    pub by_device: BTreeMap<u32, f64>,
    /// Numbers of accesses with the number of pages that have them, in descending order: reads, writes, and both
    /// together.
    pub counts: [Vec<(u64, u64)>; 3],
    /// Accesses in the sample.
    pub accesses: Accesses,
}

impl Pages {
    /// Creates empty statistics that count at most `max_regions` regions.
    pub fn new(max_regions: usize) -> Pages {
        Pages { regions: BTreeMap::new(), max_regions: max_regions.max(1), halvings: 0, accesses: Accesses::default() }
    }

    /// Adds a request. Only reads and writes count.
    pub fn touch(&mut self, device: u32, operation: Operation, lba: u64, sectors: u32) {
        let writes = match operation {
            Operation::Read => false,
            Operation::Write | Operation::WriteZeroes => true,
            Operation::Trim | Operation::Flush => return,
        };
        let mut page = lba / PAGE;
        let end = if sectors == 0 { page } else { (lba + u64::from(sectors)).div_ceil(PAGE) };
        while page < end {
            let region = page / REGION;
            let stop = end.min((region + 1) * REGION);
            if self.keeps(device, region) {
                let region = self
                    .regions
                    .entry((device, region))
                    .or_insert_with(|| Box::new(Region { reads: [0; REGION as usize], writes: [0; REGION as usize] }));
                (page..stop).for_each(|page| region.touch((page % REGION) as usize, writes, &mut self.accesses));
                self.thin_out();
            }
            page = stop;
        }
    }

    fn keeps(&self, device: u32, region: u64) -> bool {
        self.halvings == 0 || hash(device, region).leading_zeros() >= self.halvings
    }

    fn thin_out(&mut self) {
        while self.regions.len() > self.max_regions && self.halvings < 63 {
            self.halvings += 1;
            let halvings = self.halvings;
            self.regions.retain(|(device, region), _| hash(*device, *region).leading_zeros() >= halvings);
        }
    }

    /// Returns the statistics.
    pub fn finish(self) -> Touched {
        let scale = libm::exp2(f64::from(self.halvings));
        let mut touched = Touched { sampled: 1.0 / scale, accesses: self.accesses, ..Touched::default() };
        let mut counts: [BTreeMap<u64, u64>; 3] = Default::default();
        let (mut total, mut squares) = (0.0, 0.0);
        for ((device, _), region) in &self.regions {
            let mut pages = 0;
            for (reads, writes) in region.reads.iter().zip(&region.writes) {
                let (reads, writes) = (u64::from(*reads), u64::from(*writes));
                for (counts, accesses) in counts.iter_mut().zip([reads, writes, reads + writes]) {
                    if accesses > 0 {
                        *counts.entry(accesses).or_default() += 1;
                    }
                }
                pages += u32::from(reads + writes > 0);
                touched.both += if reads > 0 && writes > 0 { scale } else { 0.0 };
            }
            *touched.by_device.entry(*device).or_default() += f64::from(pages) * scale;
            total += f64::from(pages);
            squares += f64::from(pages) * f64::from(pages);
        }
        let number = |counts: &BTreeMap<u64, u64>| counts.values().sum::<u64>() as f64 * scale;
        touched.read = number(&counts[0]);
        touched.written = number(&counts[1]);
        touched.either = number(&counts[2]);
        // Each region is in the sample independently with probability p = 1 / scale. The variance of the sum over p is
        // therefore the sum of the squares over p^2, times 1 - p.
        touched.error = if total > 0.0 { ((1.0 - touched.sampled) * squares).sqrt() / total } else { 0.0 };
        touched.counts = counts.map(|counts| counts.into_iter().rev().collect());
        touched
    }
}

impl Region {
    fn touch(&mut self, page: usize, writes: bool, accesses: &mut Accesses) {
        let (read, written) = (self.reads[page] > 0, self.writes[page] > 0);
        if writes {
            accesses.writes += 1;
            accesses.overwrites += u64::from(written);
            accesses.updates += u64::from(read || written);
            self.writes[page] = self.writes[page].saturating_add(1);
        } else {
            accesses.reads += 1;
            accesses.unwritten += u64::from(!written);
            self.reads[page] = self.reads[page].saturating_add(1);
        }
    }
}

/// Returns a hash of a region: the finalizer of splitmix64, applied twice.
fn hash(device: u32, region: u64) -> u64 {
    let mix = |x: u64| {
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    mix(mix(region.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ u64::from(device).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Returns the share of the accesses to the hottest `part` of the pages. `counts` are pairs of accesses and pages, in
/// descending order of accesses. Pages with equally many accesses are interchangeable, so a part of a page counts in
/// proportion. `None` without accesses.
pub fn hot_share(counts: &[(u64, u64)], part: f64) -> Option<f64> {
    let pages: u64 = counts.iter().map(|(_, pages)| pages).sum();
    let total: f64 = counts.iter().map(|(accesses, pages)| *accesses as f64 * *pages as f64).sum();
    let mut left = pages as f64 * part;
    let mut hot = 0.0;
    for (accesses, pages) in counts {
        let taken = left.min(*pages as f64);
        hot += taken * *accesses as f64;
        left -= taken;
    }
    (pages > 0).then(|| hot / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_shares_by_hand() {
        // 60 of 100 accesses go to one page, 20 to another, and 20 to the other eight.
        let counts = [(60, 1), (20, 1), (4, 4), (1, 4)];
        assert_eq!(hot_share(&counts, 0.1), Some(0.6));
        assert_eq!(hot_share(&counts, 0.15), Some(0.7));
        assert_eq!(hot_share(&counts, 0.2), Some(0.8));
        assert_eq!(hot_share(&counts, 1.0), Some(1.0));
        assert_eq!(hot_share(&[], 0.5), None);
    }

    #[test]
    fn accesses_are_distinguished() {
        let mut pages = Pages::new(100);
        pages.touch(0, Operation::Write, 0, 16);
        pages.touch(0, Operation::Read, 8, 16);
        pages.touch(0, Operation::Write, 15, 2);
        pages.touch(0, Operation::Trim, 0, 1000);
        pages.touch(1, Operation::Write, 15, 2);
        let touched = pages.finish();
        // Device 0: page 0 written; 1 written, read, written again; 2 read, then written. Device 1: 1 and 2 written.
        let expected = Accesses { reads: 2, unwritten: 1, writes: 6, overwrites: 1, updates: 2 };
        assert_eq!(touched.accesses, expected);
        assert_eq!((touched.read, touched.written, touched.both, touched.either), (2.0, 5.0, 2.0, 5.0));
        assert_eq!(touched.by_device.into_iter().collect::<Vec<_>>(), [(0, 3.0), (1, 2.0)]);
        assert_eq!((touched.sampled, touched.error), (1.0, 0.0));
        assert_eq!(touched.counts[1], [(2, 1), (1, 4)]);
    }

    #[test]
    fn a_sample_estimates_within_its_error() {
        // A million single pages at a distance of 17 regions. Every tenth is accessed four times.
        let mut pages = Pages::new(1 << 14);
        for round in 0..4_u64 {
            for page in 0..100_000 {
                if round == 0 || page % 10 == 0 {
                    pages.touch(0, Operation::Write, page * 17 * 64 * 8, 8);
                }
            }
        }
        let touched = pages.finish();
        assert!(touched.sampled < 0.25 && touched.error > 0.001 && touched.error < 0.02, "{}", touched.error);
        assert!((touched.written / 100_000.0 - 1.0).abs() < 4.0 * touched.error, "{}", touched.written);
        // Four accesses to a tenth of the pages, out of 13 accesses to ten pages.
        let hot = hot_share(&touched.counts[1], 0.1).unwrap();
        assert!((hot - 4.0 / 13.0).abs() < 0.02, "{hot}");
    }

    #[test]
    fn memory_is_bounded_for_a_huge_request() {
        let mut pages = Pages::new(64);
        pages.touch(0, Operation::Write, 0, u32::MAX);
        assert!(pages.regions.len() <= 64);
        let touched = pages.finish();
        let exact = f64::from(u32::MAX) / 8.0;
        assert!((touched.written / exact - 1.0).abs() < 4.0 * touched.error, "{} {}", touched.written, touched.error);
    }
}
