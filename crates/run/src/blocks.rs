//! Logical blocks: widens requests to whole ones (`host.sector_size`).

use std::ops::Range;

use floatgate_core::config::DeviceConfig;
use floatgate_core::sim::request::{Operation, Request, SECTOR};
use floatgate_core::sim::source::{Pace, Source, SourceError};
use floatgate_core::sim::time::Time;

/// Widens the requests of `sources` to logical blocks of a device, if these are larger than a sector.
pub fn widen(sources: &mut Vec<Box<dyn Source>>, device: &DeviceConfig) {
    let sectors = device.host.sector_size.0 / SECTOR;
    if sectors > 1 {
        let all = std::mem::take(sources);
        sources
            .extend(all.into_iter().map(|inner| -> Box<dyn Source> { Box::new(Widened { inner, sectors, count: 0 }) }));
    }
}

/// Source whose requests are widened to whole logical blocks.
struct Widened {
    inner: Box<dyn Source>,
    /// Sectors of a logical block.
    sectors: u64,
    /// Number of requests that were widened.
    count: u64,
}

impl Source for Widened {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        let Some(request) = self.inner.next_request()? else { return Ok(None) };
        if request.operation == Operation::Flush {
            return Ok(Some(request));
        }
        let lba = request.lba - request.lba % self.sectors;
        let end = (request.lba + u64::from(request.sectors)).next_multiple_of(self.sectors);
        let sectors = (end - lba) as u32;
        self.count += u64::from((lba, sectors) != (request.lba, request.sectors));
        Ok(Some(Request { lba, sectors, ..request }))
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.inner.warnings();
        if self.count > 0 {
            let (about, bytes) = (self.inner.description(), self.sectors * SECTOR);
            let (count, were) = match self.count {
                1 => ("1 request".to_owned(), "was"),
                count => (format!("{count} requests"), "were"),
            };
            warnings.push(format!(
                "{about}: {count} {were} widened to whole logical blocks of {bytes} B (host.sector_size)"
            ));
        }
        warnings
    }

    fn issued(&mut self, request: &Request) -> Result<(), SourceError> {
        self.inner.issued(request)
    }
    fn pace(&self) -> Pace {
        self.inner.pace()
    }
    fn waits_for(&self) -> Range<usize> {
        self.inner.waits_for()
    }
    fn put_behind(&mut self, others: usize) {
        self.inner.put_behind(others);
    }
    fn start_delay(&self) -> Time {
        self.inner.start_delay()
    }
    fn stop_at(&self) -> Option<Time> {
        self.inner.stop_at()
    }
    fn out_of_time(&self) -> bool {
        self.inner.out_of_time()
    }
    fn measure_from(&self) -> Time {
        self.inner.measure_from()
    }
    fn streams(&self) -> Vec<String> {
        self.inner.streams()
    }
    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }
    fn description(&self) -> String {
        self.inner.description()
    }
    fn digest(&self) -> Option<u64> {
        self.inner.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::config::load;
    use floatgate_workload::synthetic;

    /// Returns the first and the last byte of the first requests of a job, and the number of warnings.
    fn ranges(job: &str, sector_size: &str) -> (Vec<(u64, u64)>, Vec<String>) {
        let device = load("tiny", &[format!("host.sector_size={sector_size}")]).expect("a valid device");
        let jobs = synthetic::parse(job, device.logical_bytes(), 1).expect("a valid job");
        let mut sources: Vec<Box<dyn Source>> = jobs.into_iter().map(|job| job.source).collect();
        widen(&mut sources, &device);
        let mut ranges = Vec::new();
        while let Some(request) = sources[0].next_request().expect("no error") {
            ranges.push((request.lba * SECTOR, request.lba * SECTOR + request.bytes()));
        }
        (ranges, sources[0].warnings())
    }

    #[test]
    fn requests_are_widened_to_logical_blocks() {
        let job = "rw=write bs=3k size=12k";
        assert_eq!(ranges(job, "512B"), (vec![(0, 3072), (3072, 6144), (6144, 9216), (9216, 12288)], vec![]));
        let (wide, warnings) = ranges(job, "4KiB");
        assert_eq!(wide, [(0, 4096), (0, 8192), (4096, 12288), (8192, 12288)]);
        assert!(warnings[0].contains(": 4 requests were widened to whole logical blocks of 4096 B"), "{warnings:?}");
        assert_eq!(ranges("rw=write bs=8k size=16k", "4KiB"), (vec![(0, 8192), (8192, 16384)], vec![]));
    }
}
