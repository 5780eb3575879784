//! Fuzzes the reader of traces: reads to the end or to an error, and converts the trace.
//!
//! The first byte selects the format (or its detection), and the second the options.
#![no_main]

use std::cell::RefCell;
use std::fs::File;
use std::io::{Seek, Write};

use floatgate_core::sim::source::Source;
use floatgate_workload::trace::{Devices, FORMATS, Fit, Format, Replay, Trace, TraceOptions, convert};
use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;

thread_local! {
    /// File that is rewritten for each case.
    static SCRATCH: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().expect("a file"));
}

const COLUMNS: &str = "columns=time,op,offset,size,device;time=us;offset=bytes;size=sectors;read=R;write=W;flush=F";

fn options(format: u8, bits: u8) -> TraceOptions {
    let mut options = TraceOptions { fit: Fit::Wrap, ..TraceOptions::default() };
    options.format = FORMATS.get(usize::from(format)).copied();
    if options.format.is_some_and(|format| format.name == "delimited") {
        options.columns = COLUMNS.parse().ok();
    }
    options.devices = if bits & 1 != 0 { Devices::Merge } else { Devices::SideBySide };
    options.replay = if bits & 2 != 0 { Replay::Asap } else { Replay::Timed };
    options.sort_window = u32::from(bits >> 2 & 7);
    options.skip_bad_lines = u64::from(bits >> 5) * 1000;
    options
}

fn rewrite(file: &mut File, bytes: &[u8]) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(bytes)
}

fuzz_target!(|data: &[u8]| {
    let [format, bits, bytes @ ..] = data else { return };
    let options = options(*format, *bits);
    SCRATCH.with_borrow_mut(|scratch| {
        rewrite(scratch.as_file_mut(), bytes).expect("room");
        if let Ok(mut trace) = Trace::open(scratch.path(), &options, 1 << 40) {
            while let Ok(Some(request)) = trace.next_request() {
                assert!(request.lba + u64::from(request.sectors) <= 1 << 40);
            }
            let _ = (trace.warnings(), trace.description());
        }
        let to = Format::written("fio").expect("a format");
        let _ = convert(scratch.path(), &options, to, &mut std::io::sink(), &mut |_| {});
    });
});
