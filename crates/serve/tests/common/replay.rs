//! Check that a recording of a live run replays with the same latencies, to the picosecond.

use std::io::Write;
use std::sync::{Arc, Mutex};

use floatgate_core::results::Breakdown;
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::source::Source;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Progress, Watcher, run};
use floatgate_serve::record::Sink;
use floatgate_workload::trace::{Trace, TraceOptions};

/// A recording in memory.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    /// Returns the recording.
    pub fn text(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sink for Shared {
    fn finish(self: Box<Self>) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct Latencies(Vec<(u64, Time)>);

impl Watcher for Latencies {
    fn completed(&mut self, completion: &Completion, _: Option<&Breakdown>) -> Result<(), String> {
        self.0.push((completion.request.tag, completion.finish.since(completion.request.arrival)));
        Ok(())
    }
    fn progress(&mut self, _: Progress) -> bool {
        true
    }
}

/// Replays a recording with this number of requests and this digest on a device equal to the live one.
pub fn assert_replays(text: &[u8], requests: u64, digest: u64, device: &mut Device) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    let trace = Trace::open(file.path(), &TraceOptions::default(), u64::MAX >> 10).unwrap();
    assert_eq!(trace.detected().format.name, "floatgate");
    let mut sources: Vec<Box<dyn Source>> = vec![Box::new(trace)];
    let mut replayed = Latencies::default();
    run(device, &mut sources, &mut replayed).unwrap();
    assert_eq!(sources[0].digest(), Some(digest));
    replayed.0.sort_unstable();
    let text = std::str::from_utf8(text).unwrap();
    let lines = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let live: Vec<u64> = lines.map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect();
    let replayed: Vec<u64> = replayed.0.iter().map(|(_, latency)| latency.ps()).collect();
    assert_eq!(live.len() as u64, requests);
    assert_eq!(live, replayed);
}
