//! Addresses of the requests of a model's operation.
//!
//! A zone is filled chunk by chunk, with many chunks open at a time. Requests of any size are therefore adjacent
//! without overlapping, in random order, and every page is used once before any page is used again.

use super::super::address::permutation::Passes;
use super::{OperationModel, PAGE};
use crate::sim::rng::Rng;

/// Maximum number of open chunks.
const OPEN: u64 = 256;

/// A zone with its layout.
#[derive(Clone, Debug)]
struct Laid {
    /// Cumulative weight of the zones up to and including this one.
    up_to: f64,
    /// First page in the numbering of the extents, and number of pages.
    start: u64,
    pages: u64,
    /// Pages per chunk, and order of the chunks.
    chunk: u64,
    order: Passes,
    /// Open chunks: next page and end, in the numbering of the extents.
    open: Vec<(u64, u64)>,
}

impl Laid {
    fn new(start: u64, pages: u64, up_to: f64, chunk: u64, rng: &mut Rng) -> Laid {
        // Use enough chunks so that the open ones are usually not adjacent.
        let chunk = chunk.min(pages.div_ceil(16)).max(1);
        let chunks = pages.div_ceil(chunk);
        let mut laid = Laid { up_to, start, pages, chunk, order: Passes::new(chunks, rng), open: Vec::new() };
        for _ in 0..chunks.div_ceil(2).min(OPEN) {
            let fresh = laid.fresh(rng);
            laid.open.push(fresh);
        }
        laid
    }

    /// Returns the next chunk of the pass.
    fn fresh(&mut self, rng: &mut Rng) -> (u64, u64) {
        let first = self.order.next(rng) * self.chunk;
        (self.start + first, self.start + (first + self.chunk).min(self.pages))
    }

    /// Returns the address of a request, and the index of its chunk.
    fn next(&self, rng: &mut Rng) -> (u64, usize) {
        let index = rng.below(self.open.len() as u64) as usize;
        (self.open[index].0, index)
    }

    /// Marks pages of a chunk as used. Returns `true` if some are left.
    fn used(&mut self, index: usize, pages: u64, rng: &mut Rng) -> bool {
        let (page, end) = self.open[index];
        self.open[index].0 = page + pages;
        if page + pages >= end {
            self.open[index] = self.fresh(rng);
        }
        page + pages < end
    }
}

/// Addresses of one operation.
#[derive(Clone, Debug)]
pub struct Ranks {
    extents: Vec<(u64, u64)>,
    zones: Vec<Laid>,
    sequential: f64,
    aligned: f64,
    /// End of the usable sectors.
    end: u64,
    /// End of the last request.
    last: Option<u64>,
    /// Zone and chunk of the last request, while the chunk has space for a sequential request.
    at: Option<(usize, usize)>,
    rng: Rng,
}

impl Ranks {
    /// Creates the addresses of an operation, which has been checked, on a device of `device_sectors`.
    pub fn new(model: &OperationModel, device_sectors: u64, mut rng: Rng) -> Ranks {
        let whole = [(0, (device_sectors / PAGE).max(1))];
        let extents = if model.extents.is_empty() { &whole[..] } else { &model.extents[..] };
        let pages: u64 = extents.iter().map(|(_, pages)| pages).sum();
        let mut zones = Vec::new();
        let (mut parts, mut weights, mut start) = (0.0, 0.0, 0);
        for zone in &model.zones {
            parts += zone.part;
            weights += zone.weight;
            // Compute the ends from the sum of the shares, so that what is rounded off one zone is part of the next.
            let end = ((pages as f64 * parts).round() as u64).min(pages);
            let first = start.min(pages - 1);
            let length = end.saturating_sub(first).max(1);
            zones.push(Laid::new(first, length, weights, model.chunk_pages, &mut rng));
            start = end;
        }
        Ranks {
            extents: extents.to_vec(),
            zones,
            sequential: model.sequential,
            aligned: model.aligned,
            end: device_sectors,
            last: None,
            at: None,
            rng,
        }
    }

    /// Returns the first sector of the next request. The device must have at least `sectors` sectors.
    pub fn next(&mut self, sectors: u32) -> u64 {
        let sectors = u64::from(sectors);
        let follows = self.rng.unit() < self.sequential;
        match self.last.filter(|last| follows && last + sectors <= self.end) {
            Some(last) => {
                self.use_pages((last + sectors).div_ceil(PAGE) - last.div_ceil(PAGE));
                self.last = Some(last + sectors);
                last
            }
            None => {
                let lba = self.fresh(sectors);
                self.last = Some(lba + sectors);
                lba
            }
        }
    }

    /// Returns an address in a zone.
    fn fresh(&mut self, sectors: u64) -> u64 {
        let total = self.zones.last().map_or(1.0, |zone| zone.up_to);
        let draw = self.rng.unit() * total;
        let last = self.zones.len() - 1;
        let place = self.zones.partition_point(|zone| zone.up_to <= draw).min(last);
        let within = if self.rng.unit() < self.aligned { 0 } else { 1 + self.rng.below(PAGE - 1) };
        let (page, chunk) = self.zones[place].next(&mut self.rng);
        self.at = Some((place, chunk));
        self.use_pages((within + sectors).div_ceil(PAGE));
        let lba = self.page(page) * PAGE + within;
        if lba + sectors <= self.end { lba } else { (self.end - sectors) / PAGE * PAGE }
    }

    /// Marks pages of the current chunk as used, so that no other request uses them. Pages beyond its end stay
    /// available.
    fn use_pages(&mut self, pages: u64) {
        if let Some((zone, chunk)) = self.at
            && !self.zones[zone].used(chunk, pages, &mut self.rng)
        {
            self.at = None;
        }
    }

    /// Returns the page of the device for a number in the extents.
    fn page(&self, mut number: u64) -> u64 {
        for (start, pages) in &self.extents {
            if number < *pages {
                return start + number;
            }
            number -= pages;
        }
        // A zone has at least one page, even if its share of the pages is zero.
        self.extents.last().map_or(0, |(start, pages)| start + pages - 1)
    }
}
