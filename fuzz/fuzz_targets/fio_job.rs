//! Fuzzes the parser of job files: jobs are refused with an error, or their requests are within the device.
#![no_main]

use std::path::Path;

use floatgate_core::sim::request::SECTOR;
use floatgate_core::sim::source::Source;
use floatgate_workload::synthetic::{self, Changes, Planned};
use libfuzzer_sys::fuzz_target;

const DEVICE: u64 = 256 << 20;

fuzz_target!(|text: &str| {
    let mut files = |path: &Path| match path.to_str() {
        // A file that includes itself must not loop forever.
        Some("x.fio") => Ok(text.to_owned()),
        _ => Err("not there".to_owned()),
    };
    let Ok(planned) = synthetic::plan_file(Path::new("x.fio"), &mut files, &Changes::default(), DEVICE, 1) else {
        return;
    };
    for planned in planned.into_iter().take(16) {
        let Planned::Made(mut job) = planned else { continue };
        for _ in 0..64 {
            let Ok(Some(request)) = job.next_request() else { break };
            assert!(request.lba + u64::from(request.sectors) <= DEVICE / SECTOR);
        }
    }
});
