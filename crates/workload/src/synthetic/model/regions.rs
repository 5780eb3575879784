//! Where the requests of an operation of a model go.
//!
//! A zone is filled chunk by chunk, many chunks at a time, so that requests of any size come to lie next to each other
//! without overlapping, in random order, and every page is used once before any is used again.

use super::super::address::permutation::Passes;
use super::{OperationModel, PAGE};
use crate::sim::rng::Rng;

/// Chunks that are filled at a time.
const OPEN: u64 = 256;

/// A zone, laid out.
#[derive(Clone, Debug)]
struct Laid {
    /// The weights of this zone and those before it.
    up_to: f64,
    /// Its first page in the numbering of the extents, and how many it has.
    start: u64,
    pages: u64,
    /// Pages of a chunk, and the order of the chunks.
    chunk: u64,
    order: Passes,
    /// The chunks that are being filled: next page and end, in the numbering of the extents.
    open: Vec<(u64, u64)>,
}

impl Laid {
    fn new(start: u64, pages: u64, up_to: f64, chunk: u64, rng: &mut Rng) -> Laid {
        // Enough chunks that those being filled are not the next ones to each other.
        let chunk = chunk.min(pages.div_ceil(16)).max(1);
        let chunks = pages.div_ceil(chunk);
        let mut laid = Laid { up_to, start, pages, chunk, order: Passes::new(chunks, rng), open: Vec::new() };
        for _ in 0..chunks.div_ceil(2).min(OPEN) {
            let fresh = laid.fresh(rng);
            laid.open.push(fresh);
        }
        laid
    }

    /// The next chunk of the pass.
    fn fresh(&mut self, rng: &mut Rng) -> (u64, u64) {
        let first = self.order.next(rng) * self.chunk;
        (self.start + first, self.start + (first + self.chunk).min(self.pages))
    }

    /// The place of a request, and the chunk that it is in.
    fn next(&self, rng: &mut Rng) -> (u64, usize) {
        let index = rng.below(self.open.len() as u64) as usize;
        (self.open[index].0, index)
    }

    /// So many pages of a chunk have been used. Returns whether some are left.
    fn used(&mut self, index: usize, pages: u64, rng: &mut Rng) -> bool {
        let (page, end) = self.open[index];
        self.open[index].0 = page + pages;
        if page + pages >= end {
            self.open[index] = self.fresh(rng);
        }
        page + pages < end
    }
}

/// The addresses of one operation.
#[derive(Clone, Debug)]
pub struct Ranks {
    extents: Vec<(u64, u64)>,
    zones: Vec<Laid>,
    sequential: f64,
    aligned: f64,
    /// Behind the last sector that may be used.
    end: u64,
    /// Where the last request ended.
    last: Option<u64>,
    /// The zone and the chunk that it lies in, as long as that has room for one that follows.
    at: Option<(usize, usize)>,
    rng: Rng,
}

impl Ranks {
    /// The addresses of an operation, which has been checked, on a device of so many sectors.
    pub fn new(model: &OperationModel, device_sectors: u64, mut rng: Rng) -> Ranks {
        let whole = [(0, (device_sectors / PAGE).max(1))];
        let extents = if model.extents.is_empty() { &whole[..] } else { &model.extents[..] };
        let pages: u64 = extents.iter().map(|(_, pages)| pages).sum();
        let mut zones = Vec::new();
        let (mut parts, mut weights, mut start) = (0.0, 0.0, 0);
        for zone in &model.zones {
            parts += zone.part;
            weights += zone.weight;
            // From the sum of the parts, so that what is rounded off one zone is in the next.
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

    /// The first sector of the next request, so many sectors long, which the device has.
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

    /// A place of a zone.
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

    /// What is used of a chunk is not used by others; what lies behind its end is theirs.
    fn use_pages(&mut self, pages: u64) {
        if let Some((zone, chunk)) = self.at
            && !self.zones[zone].used(chunk, pages, &mut self.rng)
        {
            self.at = None;
        }
    }

    /// The page of the device that has this number in the extents.
    fn page(&self, mut number: u64) -> u64 {
        for (start, pages) in &self.extents {
            if number < *pages {
                return start + number;
            }
            number -= pages;
        }
        // A zone has at least one page, also where its part of them is none.
        self.extents.last().map_or(0, |(start, pages)| start + pages - 1)
    }
}
