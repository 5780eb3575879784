//! Logical blocks: widens requests to whole ones (`host.sector_size`).

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::sim::request::{Operation, Request, SECTOR};
use floatgate_core::sim::source::Source;

use crate::source_wrapper::{self, Wrapper};

/// Widens the requests of `sources` to logical blocks of a device, if these are larger than a sector.
pub fn widen(sources: &mut [Box<dyn Source>], device: &DeviceConfig) {
    let sectors = device.host.sector_size.0 / SECTOR;
    if sectors > 1 {
        sources.iter_mut().for_each(|source| source_wrapper::wrap(source, Widener { sectors, count: 0 }));
    }
}

/// Widens requests to whole logical blocks.
struct Widener {
    /// Sectors of a logical block.
    sectors: u64,
    /// Number of requests that were widened.
    count: u64,
}

impl Wrapper for Widener {
    fn change(&mut self, request: Request) -> Request {
        // The device keeps units that a trim covers partly, and a wider trim would discard other data.
        if matches!(request.operation, Operation::Flush | Operation::Trim) {
            return request;
        }
        let lba = request.lba - request.lba % self.sectors;
        let end = (request.lba + u64::from(request.sectors)).next_multiple_of(self.sectors);
        let sectors = (end - lba) as u32;
        self.count += u64::from((lba, sectors) != (request.lba, request.sectors));
        Request { lba, sectors, ..request }
    }

    fn warning(&self) -> Option<String> {
        let (count, were) = match self.count {
            0 => return None,
            1 => ("1 request".to_owned(), "was"),
            count => (format!("{count} requests"), "were"),
        };
        let bytes = self.sectors * SECTOR;
        Some(format!("{count} {were} widened to whole logical blocks of {bytes} B (host.sector_size)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::device_file::load;
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
        let trims = vec![(0, 3072), (3072, 6144)];
        assert_eq!(ranges("rw=trim bs=3k size=6k", "4KiB"), (trims, vec![]), "no other data are discarded");
    }
}
