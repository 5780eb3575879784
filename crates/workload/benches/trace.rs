//! Benchmark of reading a trace, including all steps, in requests per second of processor time.
//!
//! `cargo bench -p floatgate-workload --bench trace` reads a generated SPC trace. A path after `--` reads that file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use floatgate_sim::rng::Rng;
use floatgate_sim::source::Source;
use floatgate_workload::trace::{Devices, Trace, TraceOptions};
use rustix::time::{ClockId, clock_gettime};

const REQUESTS: u64 = 10_000_000;
const RUNS: usize = 3;

fn main() {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let directory = tempfile::tempdir().expect("a directory for the trace");
    let path = given.map_or_else(|| generate(directory.path()), PathBuf::from);
    let side_by_side = TraceOptions::default();
    let merge = TraceOptions { devices: Devices::Merge, ..TraceOptions::default() };
    for (name, options) in [("one pass (merge)", merge), ("two passes (side-by-side)", side_by_side)] {
        for _ in 0..RUNS {
            let before = processor_ns();
            let mut trace = Trace::open(&path, &options, 1 << 45).expect("a readable trace");
            while trace.next_request().expect("readable requests").is_some() {}
            let seconds = (processor_ns() - before) as f64 / 1e9;
            let rate = trace.requests() as f64 / seconds / 1e6;
            println!("{name}: {} requests in {seconds:.2} s: {rate:.1} million/s", trace.requests());
        }
    }
}

/// Generates a trace like Financial1: 24 ASUs, small requests, times in microseconds.
fn generate(directory: &Path) -> PathBuf {
    let path = directory.join("generated.spc");
    let mut file = BufWriter::new(File::create(&path).expect("a file for the trace"));
    let mut rng = Rng::new(1, "trace bench");
    let mut us = 0_u64;
    for _ in 0..REQUESTS {
        us += rng.below(16_000);
        let (asu, lba, size) = (rng.below(24), rng.below(40_000_000), 512 * (1 + rng.below(32)));
        let operation = if rng.below(4) == 0 { 'R' } else { 'w' };
        writeln!(file, "{asu},{lba},{size},{operation},{}.{:06}", us / 1_000_000, us % 1_000_000).expect("room");
    }
    file.flush().expect("room");
    path
}

/// Returns the processor time that this process has used, in ns.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
