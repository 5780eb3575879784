//! Where the requests of an operation of a model go.

use super::super::address::Passes;
use super::{OperationModel, PAGE};
use crate::sim::rng::Rng;

/// A zone, laid out.
#[derive(Clone, Debug)]
struct Laid {
    /// The weights of this zone and those before it.
    up_to: f64,
    /// Its first page, in the numbering of the extents.
    start: u64,
    passes: Passes,
}

/// The addresses of one operation.
#[derive(Clone, Debug)]
pub struct Ranks {
    extents: Vec<(u64, u64)>,
    zones: Vec<Laid>,
    grid: u64,
    sequential: f64,
    aligned: f64,
    /// Behind the last sector that may be used.
    end: u64,
    /// Where the last request ended.
    last: Option<u64>,
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
            let places = end.saturating_sub(first).div_ceil(model.grid_pages).max(1);
            zones.push(Laid { up_to: weights, start: first, passes: Passes::new(places, &mut rng) });
            start = end;
        }
        Ranks {
            extents: extents.to_vec(),
            zones,
            grid: model.grid_pages,
            sequential: model.sequential,
            aligned: model.aligned,
            end: device_sectors,
            last: None,
            rng,
        }
    }

    /// The first sector of the next request, so many sectors long, which the device has.
    pub fn next(&mut self, sectors: u32) -> u64 {
        let sectors = u64::from(sectors);
        let follows = self.rng.unit() < self.sequential;
        let lba = match self.last.filter(|last| follows && last + sectors <= self.end) {
            Some(last) => last,
            None => self.fresh(sectors),
        };
        self.last = Some(lba + sectors);
        lba
    }

    /// A place of a zone.
    fn fresh(&mut self, sectors: u64) -> u64 {
        let total = self.zones.last().map_or(1.0, |zone| zone.up_to);
        let draw = self.rng.unit() * total;
        let last = self.zones.len() - 1;
        let place = self.zones.partition_point(|zone| zone.up_to <= draw).min(last);
        let zone = &mut self.zones[place];
        let page = zone.start + zone.passes.next(&mut self.rng) * self.grid;
        let within = if self.rng.unit() < self.aligned { 0 } else { 1 + self.rng.below(PAGE - 1) };
        let lba = self.page(page) * PAGE + within;
        if lba + sectors <= self.end { lba } else { (self.end - sectors) / PAGE * PAGE }
    }

    /// The page of the device that has this number in the extents.
    fn page(&self, mut number: u64) -> u64 {
        for (start, pages) in &self.extents {
            if number < *pages {
                return start + number;
            }
            number -= pages;
        }
        // The last place of a grid may begin behind the extents.
        self.extents.last().map_or(0, |(start, pages)| start + pages - 1)
    }
}
