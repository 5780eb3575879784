//! Profiles of traces.

use std::path::Path;

use floatgate_workload::trace::Reader;
use floatgate_workload::trace::profile::{Profile, Profiler};

use crate::failure::Failure;
use crate::frontend::Frontend;
use crate::traces::{TraceSpec, Traces};

/// Refuses options for the replay of a trace, which have no effect if the trace is only read.
pub fn check_reading(spec: &TraceSpec) -> Result<(), Failure> {
    let of_replay = ["--time-scale", "--max-gap", "--replay", "--fit"];
    match spec.given().into_iter().find(|name| of_replay.contains(name)) {
        Some(name) => Err(Failure::mistake(format!("{name} is for replaying a trace, and has no effect here"))),
        None => spec.check(),
    }
}

/// Reads a trace to its end.
pub fn profile(file: &Path, traces: &Traces, frontend: &dyn Frontend) -> Result<Profile, Failure> {
    /// Requests between two reports of progress.
    const OFTEN: u64 = 65_536;
    let (path, options) = traces.source(file)?;
    // Reading also fails if the user interrupts it.
    let failed = |error| {
        if frontend.wants_end() {
            Failure::Interrupted("the trace was not read to its end, so there is no result")
        } else {
            Failure::mistake(error)
        }
    };
    let mut reader = Reader::open(&path, &options).map_err(failed)?;
    let mut profiler = Profiler::default();
    frontend.begin("reading");
    let mut left = OFTEN;
    let read = loop {
        match reader.next_item() {
            Ok(Some(item)) => profiler.add(&item),
            Ok(None) => break Ok(()),
            Err(error) => break Err(failed(error)),
        }
        left -= 1;
        if left == 0 {
            left = OFTEN;
            frontend.share(reader.progress().unwrap_or(0.0));
        }
    };
    frontend.end();
    read?;
    let name = options.called.unwrap_or_else(|| file.display().to_string());
    Ok(profiler.finish_trace(&reader, &name))
}
